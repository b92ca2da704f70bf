// attention dk dv 4x4 by 4x4
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
    uint size8;
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
, constant Params& params [[buffer(8)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2 const& x1_ [[buffer(1)]]
, device type_2 const& x2_ [[buffer(2)]]
, device type_2 const& x3_ [[buffer(3)]]
, device type_2 const& x4_ [[buffer(4)]]
, device type_2 const& x5_ [[buffer(5)]]
, device type_2& y0_ [[buffer(6)]]
, device type_2& y1_ [[buffer(7)]]
, threadgroup type_4& keys
, threadgroup type_4& values
, threadgroup type_4& queries
, threadgroup type_4& gradients
, threadgroup type_5& score_gradients
, threadgroup type_5& probabilities
, constant _mslBufferSizes& _buffer_sizes [[buffer(9)]]
) {
    metal::float4 sum = metal::float4(0.0);
    metal::float4 sum_2_ = metal::float4(0.0);
    metal::float4 fetched = metal::float4(0.0);
    metal::float4 fetched_2_ = metal::float4(0.0);
    metal::float4 fetched_3_ = metal::float4(0.0);
    metal::float4 fetched_4_ = metal::float4(0.0);
    metal::float4 fetched_5_ = metal::float4(0.0);
    metal::float4 fetched_6_ = metal::float4(0.0);
    uint turn = 0u;
    float product = {};
    float product_2_ = {};
    uint id = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.total;
    if (id < _e10) {
        uint _e14 = params.heads;
        uint first = (id / _e14) * 4u;
        uint y_1 = local_index >> 2u;
        uint x_1 = local_index & 3u;
        uint _e30 = params.queries;
        uint v0_ = metal::min((metal::max(_e30, 0u) + 3u) >> 2u, 1u);
        float v1_ = x0_[0];
        uint _e63 = params.queries;
        fetched = metal::select(metal::float4(0.0), metal::float4(v1_, 0.0, 0.0, 0.0) * metal::float4(1.442695), metal::bool4((4u + metal::min(local_index, 3u)) < _e63));
        float v2_ = x3_[0];
        uint _e82 = params.queries;
        fetched_2_ = metal::select(metal::float4(0.0), metal::float4(v2_, 0.0, 0.0, 0.0), metal::bool4((4u + metal::min(local_index, 3u)) < _e82));
        float v3_ = x1_[0];
        uint _e112 = params.keys;
        fetched_3_ = metal::select(metal::float4(0.0), metal::float4(v3_, 0.0, 0.0, 0.0), metal::bool4((first + metal::min(local_index, 3u)) < _e112));
        float v4_ = x2_[0];
        uint _e130 = params.keys;
        fetched_4_ = metal::select(metal::float4(0.0), metal::float4(v4_, 0.0, 0.0, 0.0), metal::bool4((first + metal::min(local_index, 3u)) < _e130));
        float v5_ = x0_[0];
        uint _e150 = params.queries;
        fetched_5_ = metal::select(metal::float4(0.0), metal::float4(v5_, 0.0, 0.0, 0.0) * metal::float4(1.442695), metal::bool4(metal::min(local_index, 3u) < _e150));
        float v6_ = x3_[0];
        uint _e167 = params.queries;
        fetched_6_ = metal::select(metal::float4(0.0), metal::float4(v6_, 0.0, 0.0, 0.0), metal::bool4(metal::min(local_index, 3u) < _e167));
        if (local_index < 4u) {
            metal::float4 _e175 = fetched_3_;
            keys.inner[local_index] = _e175;
        }
        if (local_index < 4u) {
            metal::float4 _e180 = fetched_4_;
            values.inner[local_index] = _e180;
        }
        if (local_index < 4u) {
            metal::float4 _e185 = fetched_5_;
            queries.inner[local_index] = _e185;
        }
        if (local_index < 4u) {
            metal::float4 _e190 = fetched_6_;
            gradients.inner[local_index] = _e190;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e475 = turn;
                turn = _e475 + 1u;
            }
            loop_init = false;
            uint _e193 = turn;
            if (_e193 < v0_) {
            } else {
                break;
            }
            {
                uint _e195 = turn;
                uint v7_ = (_e195 + 2u) * 4u;
                float v8_ = x4_[0];
                float v9_ = v8_ * 1.442695;
                float v10_ = x5_[0];
                product = 0.0;
                metal::float4 v11_ = keys.inner[y_1];
                metal::float4 v12_ = queries.inner[x_1];
                float _e224 = product;
                product = metal::fma(v11_.w, v12_.w, metal::fma(v11_.z, v12_.z, metal::fma(v11_.y, v12_.y, metal::fma(v11_.x, v12_.x, _e224))));
                product_2_ = 0.0;
                metal::float4 v13_ = values.inner[y_1];
                metal::float4 v14_ = gradients.inner[x_1];
                float _e245 = product_2_;
                product_2_ = metal::fma(v13_.w, v14_.w, metal::fma(v13_.z, v14_.z, metal::fma(v13_.y, v14_.y, metal::fma(v13_.x, v14_.x, _e245))));
                uint _e250 = turn;
                uint _e256 = params.queries;
                uint _e261 = params.keys;
                bool v15_ = (((_e250 * 4u) + x_1) < _e256) & ((first + y_1) < _e261);
                float _e264 = product;
                float _e276 = gf_exp2_(_e264 - (((v9_ > -340282350000000000000000000000000000000.0) | ((as_type<uint>(v9_) & 2147483647u) > 2139095040u)) ? v9_ : -340282350000000000000000000000000000000.0));
                float _e283 = product_2_;
                score_gradients.inner[(y_1 * 4u) + x_1] = v15_ ? (_e276 * (_e283 - v10_)) : 0.0;
                probabilities.inner[(y_1 * 4u) + x_1] = v15_ ? _e276 : 0.0;
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint v17_ = metal::min(x_1 & 3u, 0u);
                uint v18_ = (x_1 >> 2u) * 4u;
                float v19_ = score_gradients.inner[(y_1 * 4u) + v18_];
                metal::float4 v20_ = queries.inner[v18_ + v17_];
                metal::float4 _e313 = sum;
                sum = metal::fma(v20_, metal::float4(v19_), _e313);
                uint v21_ = v18_ + 1u;
                float v22_ = score_gradients.inner[(y_1 * 4u) + v21_];
                metal::float4 v23_ = queries.inner[v21_ + v17_];
                metal::float4 _e328 = sum;
                sum = metal::fma(v23_, metal::float4(v22_), _e328);
                uint v24_ = v18_ + 2u;
                float v25_ = score_gradients.inner[(y_1 * 4u) + v24_];
                metal::float4 v26_ = queries.inner[v24_ + v17_];
                metal::float4 _e343 = sum;
                sum = metal::fma(v26_, metal::float4(v25_), _e343);
                uint v27_ = v18_ + 3u;
                float v28_ = score_gradients.inner[(y_1 * 4u) + v27_];
                metal::float4 v29_ = queries.inner[v27_ + v17_];
                metal::float4 _e358 = sum;
                sum = metal::fma(v29_, metal::float4(v28_), _e358);
                uint v30_ = metal::min(x_1 & 3u, 0u);
                uint v31_ = (x_1 >> 2u) * 4u;
                float v32_ = probabilities.inner[(y_1 * 4u) + v31_];
                metal::float4 v33_ = gradients.inner[v31_ + v30_];
                metal::float4 _e379 = sum_2_;
                sum_2_ = metal::fma(v33_, metal::float4(v32_), _e379);
                uint v34_ = v31_ + 1u;
                float v35_ = probabilities.inner[(y_1 * 4u) + v34_];
                metal::float4 v36_ = gradients.inner[v34_ + v30_];
                metal::float4 _e394 = sum_2_;
                sum_2_ = metal::fma(v36_, metal::float4(v35_), _e394);
                uint v37_ = v31_ + 2u;
                float v38_ = probabilities.inner[(y_1 * 4u) + v37_];
                metal::float4 v39_ = gradients.inner[v37_ + v30_];
                metal::float4 _e409 = sum_2_;
                sum_2_ = metal::fma(v39_, metal::float4(v38_), _e409);
                uint v40_ = v31_ + 3u;
                float v41_ = probabilities.inner[(y_1 * 4u) + v40_];
                metal::float4 v42_ = gradients.inner[v40_ + v30_];
                metal::float4 _e424 = sum_2_;
                sum_2_ = metal::fma(v42_, metal::float4(v41_), _e424);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                if (local_index < 4u) {
                    metal::float4 _e430 = fetched;
                    queries.inner[local_index] = _e430;
                }
                float v43_ = x0_[0];
                uint _e448 = params.queries;
                fetched = metal::select(metal::float4(0.0), metal::float4(v43_, 0.0, 0.0, 0.0) * metal::float4(1.442695), metal::bool4((v7_ + metal::min(local_index, 3u)) < _e448));
                if (local_index < 4u) {
                    metal::float4 _e456 = fetched_2_;
                    gradients.inner[local_index] = _e456;
                }
                float v44_ = x3_[0];
                uint _e471 = params.queries;
                fetched_2_ = metal::select(metal::float4(0.0), metal::float4(v44_, 0.0, 0.0, 0.0), metal::bool4((v7_ + metal::min(local_index, 3u)) < _e471));
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint _e481 = params.keys;
        if (((first + y_1) < _e481) & ((x_1 >> 2u) == 0u)) {
            uint v45_ = x_1 & 3u;
            metal::float4 _e490 = sum;
            metal::float4 v46_ = _e490 * metal::float4(0.6931472);
            float v47_ = v46_.x;
            if ((v45_ * 4u) < 1u) {
                y0_[0] = v47_;
            }
            float v48_ = v46_.y;
            if (((v45_ * 4u) + 1u) < 1u) {
                y0_[0] = v48_;
            }
            float v49_ = v46_.z;
            if (((v45_ * 4u) + 2u) < 1u) {
                y0_[0] = v49_;
            }
            float v50_ = v46_.w;
            if (((v45_ * 4u) + 3u) < 1u) {
                y0_[0] = v50_;
            }
        }
        uint _e531 = params.keys;
        if (((first + y_1) < _e531) & ((x_1 >> 2u) == 0u)) {
            uint v51_ = x_1 & 3u;
            metal::float4 _e540 = sum_2_;
            metal::float4 v52_ = _e540 * metal::float4(1.0);
            float v53_ = v52_.x;
            if ((v51_ * 4u) < 1u) {
                y1_[0] = v53_;
            }
            float v54_ = v52_.y;
            if (((v51_ * 4u) + 1u) < 1u) {
                y1_[0] = v54_;
            }
            float v55_ = v52_.z;
            if (((v51_ * 4u) + 2u) < 1u) {
                y1_[0] = v55_;
            }
            float v56_ = v52_.w;
            if (((v51_ * 4u) + 3u) < 1u) {
                y1_[0] = v56_;
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
