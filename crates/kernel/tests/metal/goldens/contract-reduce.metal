// contract reduce 3
// language: metal2.4
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
};

struct Params {
    uint m;
    uint columns;
    uint points;
    uint parts;
};
typedef float type_2[1];

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(2)]]
, device type_2& y0_ [[buffer(0)]]
, device type_2 const& s0_ [[buffer(1)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float sum = 0.0;
    uint part = 0u;
    uint id = (((workgroup_id.y * workgroup_count.x) + workgroup_id.x) * 64u) + local_index;
    uint _e13 = params.points;
    if (id < _e13) {
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e35 = part;
                part = _e35 + 1u;
            }
            loop_init = false;
            uint _e19 = part;
            uint _e22 = params.parts;
            if (_e19 < _e22) {
            } else {
                break;
            }
            {
                uint _e25 = part;
                uint _e28 = params.points;
                float v0_ = s0_[(_e25 * _e28) + id];
                float _e33 = sum;
                sum = _e33 + v0_;
            }
        }
        uint _e41 = params.columns;
        float _e44 = sum;
        y0_[id % _e41] = _e44;
        return;
    } else {
        return;
    }
}
