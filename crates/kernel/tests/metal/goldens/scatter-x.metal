// scatter 16x1
// language: metal2.4
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size3;
};

struct Params {
    uint rows;
    uint cols;
    uint begin;
    uint end;
    uint blocks;
};
typedef int type_2[1];
typedef float type_4[1];
struct type_5 {
    int inner[16];
};
struct type_6 {
    uint inner[1];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(16)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(3)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_4 const& x1_ [[buffer(1)]]
, device type_4& y0_ [[buffer(2)]]
, threadgroup type_5& ids
, threadgroup type_6& found
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    float sum = 0.0;
    uint tile = {};
    uint i = {};
    uint v0_ = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.blocks;
    uint v1_ = (v0_ / _e10) * 16u;
    uint row = v1_ + local_index;
    uint _e17 = params.blocks;
    uint col = v0_ % _e17;
    uint _e21 = params.rows;
    uint _e27 = params.cols;
    uint _e31 = params.cols;
    uint place = (metal::min(row, _e21 - 1u) * _e27) + metal::min(col, _e31 - 1u);
    uint _e40 = params.begin;
    tile = _e40;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e122 = tile;
            tile = _e122 + 16u;
        }
        loop_init = false;
        uint _e42 = tile;
        uint _e45 = params.end;
        if (_e42 < _e45) {
        } else {
            break;
        }
        {
            if (local_index == 0u) {
                found.inner[0] = 0u;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e52 = tile;
            uint v2_ = _e52 + local_index;
            uint _e57 = params.end;
            int v3_ = x0_[metal::min(v2_, _e57 - 1u)];
            uint _e70 = params.end;
            int v4_ = (v2_ < _e70) ? metal::min(metal::max(v3_, 0), 0) : -1;
            ids.inner[local_index] = v4_;
            if ((as_type<uint>(v4_) - v1_) < 16u) {
                found.inner[0] = 1u;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint v5_ = found.inner[0];
            if (v5_ != 0u) {
                uint _e89 = params.cols;
                uint v6_ = metal::min(col, _e89 - 1u);
                uint _e95 = params.end;
                uint _e96 = tile;
                uint v7_ = metal::min(_e95 - _e96, 16u);
                i = 0u;
                bool loop_init_1 = true;
                while(true) {
                    if (!loop_init_1) {
                        uint _e119 = i;
                        i = _e119 + 1u;
                    }
                    loop_init_1 = false;
                    uint _e102 = i;
                    if (_e102 < v7_) {
                    } else {
                        break;
                    }
                    {
                        uint _e105 = i;
                        int v8_ = ids.inner[_e105];
                        if (as_type<uint>(v8_) == row) {
                            uint _e111 = tile;
                            uint _e112 = i;
                            float v9_ = x1_[(_e111 + _e112) + v6_];
                            float _e117 = sum;
                            sum = _e117 + v9_;
                        }
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint _e127 = params.rows;
    uint _e131 = params.cols;
    if ((row < _e127) & (col < _e131)) {
        float _e136 = sum;
        y0_[place] = _e136;
        return;
    } else {
        return;
    }
}
