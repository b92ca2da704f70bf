// row streaming 4x16 rows fast
// language: metal2.4
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size3;
    uint size4;
    uint size5;
    uint size6;
    uint size7;
};

struct Params {
    uint rows;
    uint width;
};
typedef float type_2[1];
struct type_3 {
    float inner[64];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(7)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2 const& x1_ [[buffer(1)]]
, device type_2 const& x2_ [[buffer(2)]]
, device type_2 const& x3_ [[buffer(3)]]
, device type_2 const& x4_ [[buffer(4)]]
, device type_2& y1_ [[buffer(5)]]
, device type_2& y0_ [[buffer(6)]]
, threadgroup type_3& lanes
, threadgroup type_3& lanes_2_
, threadgroup type_3& lanes_3_
, constant _mslBufferSizes& _buffer_sizes [[buffer(8)]]
) {
    float sum = 0.0;
    float sum_2_ = 0.0;
    float sum_3_ = 0.0;
    uint c = {};
    uint c_2_ = {};
    uint v0_ = local_index >> 2u;
    uint v1_ = local_index & 3u;
    uint v2_ = (((workgroup_id.y * workgroup_count.x) + workgroup_id.x) * 4u) + v1_;
    uint _e17 = params.rows;
    bool v3_ = v2_ < _e17;
    uint _e21 = params.rows;
    uint row = metal::min(v2_, _e21 - 1u);
    uint v4_ = (v0_ * 4u) + v1_;
    c = v0_;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e84 = c;
            c = _e84 + 16u;
        }
        loop_init = false;
        uint _e35 = c;
        uint _e38 = params.width;
        if (_e35 < _e38) {
        } else {
            break;
        }
        {
            uint _e40 = c;
            uint v5_ = _e40 / 7u;
            uint _e55 = c;
            uint v6_ = (((row * 35u) + ((v5_ / 5u) * 140u)) + ((v5_ % 5u) * 7u)) + (_e55 % 7u);
            float v7_ = x0_[v6_];
            float v8_ = x1_[row];
            float v9_ = x2_[row];
            float v10_ = x3_[row];
            float v11_ = x4_[v6_];
            float v12_ = v7_ - v8_;
            float v13_ = v11_ * v10_;
            float _e76 = sum;
            sum = _e76 + v13_;
            float _e78 = sum_2_;
            sum_2_ = _e78 + (v13_ * (v12_ * v9_));
            float _e82 = sum_3_;
            sum_3_ = _e82 + v12_;
        }
    }
    float _e89 = sum;
    lanes.inner[v4_] = _e89;
    float _e92 = sum_2_;
    lanes_2_.inner[v4_] = _e92;
    float _e95 = sum_3_;
    lanes_3_.inner[v4_] = _e95;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (v0_ < 8u) {
        uint v14_ = v4_ + 32u;
        float v15_ = lanes.inner[v14_];
        float v16_ = lanes_2_.inner[v14_];
        float v17_ = lanes_3_.inner[v14_];
        float _e109 = sum;
        sum = _e109 + v15_;
        float _e111 = sum_2_;
        sum_2_ = _e111 + v16_;
        float _e113 = sum_3_;
        sum_3_ = _e113 + v17_;
        float _e117 = sum;
        lanes.inner[v4_] = _e117;
        float _e120 = sum_2_;
        lanes_2_.inner[v4_] = _e120;
        float _e123 = sum_3_;
        lanes_3_.inner[v4_] = _e123;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (v0_ < 4u) {
        uint v18_ = v4_ + 16u;
        float v19_ = lanes.inner[v18_];
        float v20_ = lanes_2_.inner[v18_];
        float v21_ = lanes_3_.inner[v18_];
        float _e137 = sum;
        sum = _e137 + v19_;
        float _e139 = sum_2_;
        sum_2_ = _e139 + v20_;
        float _e141 = sum_3_;
        sum_3_ = _e141 + v21_;
        float _e145 = sum;
        lanes.inner[v4_] = _e145;
        float _e148 = sum_2_;
        lanes_2_.inner[v4_] = _e148;
        float _e151 = sum_3_;
        lanes_3_.inner[v4_] = _e151;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (v0_ < 2u) {
        uint v22_ = v4_ + 8u;
        float v23_ = lanes.inner[v22_];
        float v24_ = lanes_2_.inner[v22_];
        float v25_ = lanes_3_.inner[v22_];
        float _e165 = sum;
        sum = _e165 + v23_;
        float _e167 = sum_2_;
        sum_2_ = _e167 + v24_;
        float _e169 = sum_3_;
        sum_3_ = _e169 + v25_;
        float _e173 = sum;
        lanes.inner[v4_] = _e173;
        float _e176 = sum_2_;
        lanes_2_.inner[v4_] = _e176;
        float _e179 = sum_3_;
        lanes_3_.inner[v4_] = _e179;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (v0_ < 1u) {
        uint v26_ = v4_ + 4u;
        float v27_ = lanes.inner[v26_];
        float v28_ = lanes_2_.inner[v26_];
        float v29_ = lanes_3_.inner[v26_];
        float _e193 = sum;
        sum = _e193 + v27_;
        float _e195 = sum_2_;
        sum_2_ = _e195 + v28_;
        float _e197 = sum_3_;
        sum_3_ = _e197 + v29_;
        float _e201 = sum;
        lanes.inner[v4_] = _e201;
        float _e204 = sum_2_;
        lanes_2_.inner[v4_] = _e204;
        float _e207 = sum_3_;
        lanes_3_.inner[v4_] = _e207;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint v30_ = v4_ - (v0_ * 4u);
    float v31_ = lanes.inner[v30_];
    float v32_ = lanes_2_.inner[v30_];
    float v33_ = lanes_3_.inner[v30_];
    sum = v31_;
    sum_2_ = v32_;
    sum_3_ = v33_;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    float v34_ = sum;
    float v35_ = sum_2_;
    float v36_ = sum_3_;
    if ((v0_ == 0u) & v3_) {
        y1_[row] = v36_ * 0.00952381;
    }
    if (v3_) {
        c_2_ = v0_;
        bool loop_init_1 = true;
        while(true) {
            if (!loop_init_1) {
                uint _e298 = c_2_;
                c_2_ = _e298 + 16u;
            }
            loop_init_1 = false;
            uint _e231 = c_2_;
            uint _e234 = params.width;
            if (_e231 < _e234) {
            } else {
                break;
            }
            {
                uint _e236 = c_2_;
                uint v37_ = _e236 % 7u;
                uint _e239 = c_2_;
                uint v38_ = _e239 / 7u;
                uint v39_ = v38_ % 5u;
                uint v40_ = v38_ / 5u;
                uint v41_ = (((row * 35u) + (v40_ * 140u)) + (v39_ * 7u)) + v37_;
                float v42_ = x0_[v41_];
                float v43_ = x1_[row];
                float v44_ = x2_[row];
                float v45_ = x3_[row];
                float v46_ = x4_[v41_];
                float v47_ = v34_ * 0.00952381;
                float v48_ = v36_ * 0.00952381;
                y0_[(((row * 35u) + (v40_ * 140u)) + (v39_ * 7u)) + v37_] = v44_ * (((v46_ * v45_) - v47_) - ((((v42_ - v43_) - v48_) * v44_) * ((v35_ * 0.00952381) - ((v48_ * v44_) * v47_))));
            }
        }
        return;
    } else {
        return;
    }
}
