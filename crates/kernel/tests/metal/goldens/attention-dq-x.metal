// attention dq 4x4 by 4x4
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
    uint queries;
    uint keys;
    uint heads;
    uint blocks;
    uint total;
};
typedef float type_2[1];
struct type_4 {
    metal::float4 inner[4];
};
struct type_5 {
    float inner[16];
};

float gf_float(
    uint bits
) {
    return as_type<float>(bits);
}

float gf_exp2_(
    float x
) {
    float z = x + 12583039.0;
    float r = x - (metal::abs(z) - 12583039.0);
    float a = (((((0.00015594678 * r) + 0.0013406643) * r) + 0.009617693) * r) + 0.055503104;
    float y = (((((a * r) + 0.24022654) * r) + 0.69314724) * r) + 1.0;
    float _e28 = gf_float(2139095040u);
    float far = (x > 0.0) ? _e28 : 0.0;
    return (metal::abs(x) > 126.5) ? far : (y * as_type<float>(as_type<uint>(z) << 23u));
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(16)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(7)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2 const& x1_ [[buffer(1)]]
, device type_2 const& x2_ [[buffer(2)]]
, device type_2 const& x3_ [[buffer(3)]]
, device type_2 const& x4_ [[buffer(4)]]
, device type_2 const& x5_ [[buffer(5)]]
, device type_2& y0_ [[buffer(6)]]
, threadgroup type_4& queries
, threadgroup type_4& gradients
, threadgroup type_4& keys
, threadgroup type_4& values
, threadgroup type_5& weights
, constant _mslBufferSizes& _buffer_sizes [[buffer(8)]]
) {
    metal::float4 fetched = metal::float4(0.0);
    metal::float4 fetched_2_ = metal::float4(0.0);
    metal::float4 fetched_3_ = metal::float4(0.0);
    metal::float4 fetched_4_ = metal::float4(0.0);
    metal::float4 fetched_5_ = metal::float4(0.0);
    metal::float4 fetched_6_ = metal::float4(0.0);
    metal::float4 sum = metal::float4(0.0);
    uint from_2_ = 0u;
    float product = {};
    float product_2_ = {};
    uint id = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.total;
    if (id < _e10) {
        uint _e14 = params.heads;
        uint first = (id / _e14) * 4u;
        uint y_1 = local_index >> 2u;
        uint x_1 = local_index & 3u;
        uint v0_ = first + y_1;
        float v1_ = x4_[0];
        float v2_ = v1_ * 1.442695;
        float v3_ = ((v2_ > -340282350000000000000000000000000000000.0) | ((as_type<uint>(v2_) & 2147483647u) > 2139095040u)) ? v2_ : -340282350000000000000000000000000000000.0;
        float v4_ = x5_[0];
        float v5_ = x1_[0];
        uint _e62 = params.keys;
        fetched = metal::select(metal::float4(0.0), metal::float4(v5_, 0.0, 0.0, 0.0), metal::bool4((4u + metal::min(local_index, 3u)) < _e62));
        float v6_ = x2_[0];
        uint _e81 = params.keys;
        fetched_2_ = metal::select(metal::float4(0.0), metal::float4(v6_, 0.0, 0.0, 0.0), metal::bool4((4u + metal::min(local_index, 3u)) < _e81));
        float v7_ = x0_[0];
        uint _e114 = params.queries;
        fetched_3_ = metal::select(metal::float4(0.0), metal::float4(v7_, 0.0, 0.0, 0.0) * metal::float4(1.442695), metal::bool4((first + metal::min(local_index, 3u)) < _e114));
        float v8_ = x3_[0];
        uint _e132 = params.queries;
        fetched_4_ = metal::select(metal::float4(0.0), metal::float4(v8_, 0.0, 0.0, 0.0), metal::bool4((first + metal::min(local_index, 3u)) < _e132));
        float v9_ = x1_[0];
        uint _e149 = params.keys;
        fetched_5_ = metal::select(metal::float4(0.0), metal::float4(v9_, 0.0, 0.0, 0.0), metal::bool4(metal::min(local_index, 3u) < _e149));
        float v10_ = x2_[0];
        uint _e166 = params.keys;
        fetched_6_ = metal::select(metal::float4(0.0), metal::float4(v10_, 0.0, 0.0, 0.0), metal::bool4(metal::min(local_index, 3u) < _e166));
        if (local_index < 4u) {
            metal::float4 _e174 = fetched_3_;
            queries.inner[local_index] = _e174;
        }
        if (local_index < 4u) {
            metal::float4 _e179 = fetched_4_;
            gradients.inner[local_index] = _e179;
        }
        if (local_index < 4u) {
            metal::float4 _e184 = fetched_5_;
            keys.inner[local_index] = _e184;
        }
        if (local_index < 4u) {
            metal::float4 _e189 = fetched_6_;
            values.inner[local_index] = _e189;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e381 = from_2_;
                from_2_ = _e381 + 4u;
            }
            loop_init = false;
            uint _e195 = from_2_;
            uint _e198 = params.keys;
            if (_e195 < _e198) {
            } else {
                break;
            }
            {
                product = 0.0;
                metal::float4 v11_ = queries.inner[y_1];
                metal::float4 v12_ = keys.inner[x_1];
                float _e216 = product;
                product = metal::fma(v11_.w, v12_.w, metal::fma(v11_.z, v12_.z, metal::fma(v11_.y, v12_.y, metal::fma(v11_.x, v12_.x, _e216))));
                product_2_ = 0.0;
                metal::float4 v13_ = gradients.inner[y_1];
                metal::float4 v14_ = values.inner[x_1];
                float _e237 = product_2_;
                product_2_ = metal::fma(v13_.w, v14_.w, metal::fma(v13_.z, v14_.z, metal::fma(v13_.y, v14_.y, metal::fma(v13_.x, v14_.x, _e237))));
                float _e242 = product;
                float _e244 = gf_exp2_(_e242 - v3_);
                float _e251 = product_2_;
                uint _e256 = params.queries;
                uint _e258 = from_2_;
                uint _e262 = params.keys;
                weights.inner[(y_1 * 4u) + x_1] = ((v0_ < _e256) & ((_e258 + x_1) < _e262)) ? (_e244 * (_e251 - v4_)) : 0.0;
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint v16_ = metal::min(x_1 & 3u, 0u);
                uint v17_ = (x_1 >> 2u) * 4u;
                float v18_ = weights.inner[(y_1 * 4u) + v17_];
                metal::float4 v19_ = keys.inner[v17_ + v16_];
                metal::float4 _e285 = sum;
                sum = metal::fma(v19_, metal::float4(v18_), _e285);
                uint v20_ = v17_ + 1u;
                float v21_ = weights.inner[(y_1 * 4u) + v20_];
                metal::float4 v22_ = keys.inner[v20_ + v16_];
                metal::float4 _e300 = sum;
                sum = metal::fma(v22_, metal::float4(v21_), _e300);
                uint v23_ = v17_ + 2u;
                float v24_ = weights.inner[(y_1 * 4u) + v23_];
                metal::float4 v25_ = keys.inner[v23_ + v16_];
                metal::float4 _e315 = sum;
                sum = metal::fma(v25_, metal::float4(v24_), _e315);
                uint v26_ = v17_ + 3u;
                float v27_ = weights.inner[(y_1 * 4u) + v26_];
                metal::float4 v28_ = keys.inner[v26_ + v16_];
                metal::float4 _e330 = sum;
                sum = metal::fma(v28_, metal::float4(v27_), _e330);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint _e332 = from_2_;
                uint v29_ = _e332 + 8u;
                if (local_index < 4u) {
                    metal::float4 _e339 = fetched;
                    keys.inner[local_index] = _e339;
                }
                float v30_ = x1_[0];
                uint _e354 = params.keys;
                fetched = metal::select(metal::float4(0.0), metal::float4(v30_, 0.0, 0.0, 0.0), metal::bool4((v29_ + metal::min(local_index, 3u)) < _e354));
                if (local_index < 4u) {
                    metal::float4 _e362 = fetched_2_;
                    values.inner[local_index] = _e362;
                }
                float v31_ = x2_[0];
                uint _e377 = params.keys;
                fetched_2_ = metal::select(metal::float4(0.0), metal::float4(v31_, 0.0, 0.0, 0.0), metal::bool4((v29_ + metal::min(local_index, 3u)) < _e377));
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint _e387 = params.queries;
        if (((first + y_1) < _e387) & ((x_1 >> 2u) == 0u)) {
            uint v32_ = x_1 & 3u;
            metal::float4 _e396 = sum;
            metal::float4 v33_ = _e396 * metal::float4(1.0);
            float v34_ = v33_.x;
            if ((v32_ * 4u) < 1u) {
                y0_[0] = v34_;
            }
            float v35_ = v33_.y;
            if (((v32_ * 4u) + 1u) < 1u) {
                y0_[0] = v35_;
            }
            float v36_ = v33_.z;
            if (((v32_ * 4u) + 2u) < 1u) {
                y0_[0] = v36_;
            }
            float v37_ = v33_.w;
            if (((v32_ * 4u) + 3u) < 1u) {
                y0_[0] = v37_;
                return;
            } else {
                return;
            }
        } else {
            return;
        }
    } else {
        return;
    }
}
