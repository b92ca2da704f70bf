// attention 4x4 by 4x4
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
    float inner[20];
};
struct type_6 {
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

float gf_log(
    float x_1
) {
    uint bits_1 = as_type<uint>(x_1);
    bool tiny = bits_1 < 8388608u;
    uint normal = (tiny ? as_type<uint>(static_cast<float>(bits_1)) : bits_1) + 4913933u;
    float k = static_cast<float>(as_type<int>(as_type<uint>(static_cast<int>(normal >> 23u)) - as_type<uint>(tiny ? 276 : 127)));
    float f = as_type<float>((normal & 8388607u) + 1060439283u) - 1.0;
    float z_1 = f * f;
    float a_1 = (((((-0.07632951 * f) + 0.12761037) * f) + -0.13160515) * f) + 0.14201854;
    float q = (((((((a_1 * f) + -0.16623333) * f) + 0.20001222) * f) + -0.25000823) * f) + 0.3333333;
    float y_1 = (((q * f) * z_1) + (k * -0.00021219444)) + (-0.5 * z_1);
    float finite = (f + y_1) + (k * 0.6933594);
    float _e60 = gf_float(2143289344u);
    float special = (bits_1 == 2139095040u) ? x_1 : _e60;
    float positive = (bits_1 >= 2139095040u) ? special : finite;
    float _e68 = gf_float(4286578688u);
    return ((bits_1 & 2147483647u) == 0u) ? _e68 : positive;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(16)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(5)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2 const& x1_ [[buffer(1)]]
, device type_2 const& x2_ [[buffer(2)]]
, device type_2& y0_ [[buffer(3)]]
, device type_2& y1_ [[buffer(4)]]
, threadgroup type_4& queries
, threadgroup type_4& keys
, threadgroup type_4& values
, threadgroup type_5& exchange
, threadgroup type_6& weights
, constant _mslBufferSizes& _buffer_sizes [[buffer(6)]]
) {
    metal::float4 fetched = metal::float4(0.0);
    metal::float4 fetched_2_ = metal::float4(0.0);
    float most = -340282350000000000000000000000000000000.0;
    float total = 0.0;
    metal::float4 fetched_3_ = metal::float4(0.0);
    metal::float4 fetched_4_ = metal::float4(0.0);
    metal::float4 sum = metal::float4(0.0);
    uint from_2_ = 0u;
    float product = {};
    uint id = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.total;
    if (id < _e10) {
        uint _e14 = params.heads;
        uint first = (id / _e14) * 4u;
        uint y_2 = local_index >> 2u;
        uint x_2 = local_index & 3u;
        float v0_ = x2_[0];
        uint _e45 = params.keys;
        fetched_2_ = metal::select(metal::float4(0.0), metal::float4(v0_, 0.0, 0.0, 0.0), metal::bool4(metal::min(local_index, 3u) < _e45));
        float v1_ = x1_[0];
        uint _e64 = params.keys;
        fetched = metal::select(metal::float4(0.0), metal::float4(v1_, 0.0, 0.0, 0.0), metal::bool4((4u + metal::min(local_index, 3u)) < _e64));
        float v2_ = x0_[0];
        uint _e91 = params.queries;
        fetched_3_ = metal::select(metal::float4(0.0), metal::float4(v2_, 0.0, 0.0, 0.0) * metal::float4(1.442695), metal::bool4((first + metal::min(local_index, 3u)) < _e91));
        float v3_ = x1_[0];
        uint _e108 = params.keys;
        fetched_4_ = metal::select(metal::float4(0.0), metal::float4(v3_, 0.0, 0.0, 0.0), metal::bool4(metal::min(local_index, 3u) < _e108));
        if (local_index < 4u) {
            metal::float4 _e116 = fetched_3_;
            queries.inner[local_index] = _e116;
        }
        if (local_index < 4u) {
            metal::float4 _e121 = fetched_4_;
            keys.inner[local_index] = _e121;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e325 = from_2_;
                from_2_ = _e325 + 4u;
            }
            loop_init = false;
            uint _e127 = from_2_;
            uint _e130 = params.keys;
            if (_e127 < _e130) {
            } else {
                break;
            }
            {
                product = 0.0;
                metal::float4 v4_ = queries.inner[y_2];
                metal::float4 v5_ = keys.inner[x_2];
                float _e148 = product;
                product = metal::fma(v4_.w, v5_.w, metal::fma(v4_.z, v5_.z, metal::fma(v4_.y, v5_.y, metal::fma(v4_.x, v5_.x, _e148))));
                float _e154 = gf_float(4286578688u);
                float _e155 = product;
                uint _e156 = from_2_;
                uint _e160 = params.keys;
                float v6_ = ((_e156 + x_2) < _e160) ? _e155 : _e154;
                exchange.inner[(y_2 * 5u) + x_2] = v6_;
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                if (local_index < 4u) {
                    metal::float4 _e172 = fetched_2_;
                    values.inner[local_index] = _e172;
                }
                float v7_ = x2_[0];
                uint _e182 = from_2_;
                uint _e190 = params.keys;
                fetched_2_ = metal::select(metal::float4(0.0), metal::float4(v7_, 0.0, 0.0, 0.0), metal::bool4(((_e182 + 4u) + metal::min(local_index, 3u)) < _e190));
                if (local_index < 4u) {
                    metal::float4 _e198 = fetched;
                    keys.inner[local_index] = _e198;
                }
                float v8_ = x1_[0];
                uint _e208 = from_2_;
                uint _e216 = params.keys;
                fetched = metal::select(metal::float4(0.0), metal::float4(v8_, 0.0, 0.0, 0.0), metal::bool4(((_e208 + 8u) + metal::min(local_index, 3u)) < _e216));
                uint v9_ = y_2 * 5u;
                float v10_ = exchange.inner[v9_];
                float v11_ = exchange.inner[v9_ + 1u];
                float v12_ = exchange.inner[v9_ + 2u];
                float v13_ = exchange.inner[v9_ + 3u];
                float v14_ = most;
                float v15_ = metal::max(v14_, metal::max(metal::max(metal::max(v10_, v11_), v12_), v13_));
                float _e246 = gf_exp2_(v14_ - v15_);
                float _e248 = gf_exp2_(v6_ - v15_);
                weights.inner[(y_2 * 4u) + x_2] = _e248;
                float _e254 = total;
                total = metal::fma(_e254, _e246, _e248);
                most = v15_;
                metal::float4 _e256 = sum;
                sum = _e256 * metal::float4(_e246);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint v18_ = metal::min(x_2 & 3u, 0u);
                uint v19_ = (x_2 >> 2u) * 4u;
                float v20_ = weights.inner[(y_2 * 4u) + v19_];
                metal::float4 v21_ = values.inner[v19_ + v18_];
                metal::float4 _e278 = sum;
                sum = metal::fma(v21_, metal::float4(v20_), _e278);
                uint v22_ = v19_ + 1u;
                float v23_ = weights.inner[(y_2 * 4u) + v22_];
                metal::float4 v24_ = values.inner[v22_ + v18_];
                metal::float4 _e293 = sum;
                sum = metal::fma(v24_, metal::float4(v23_), _e293);
                uint v25_ = v19_ + 2u;
                float v26_ = weights.inner[(y_2 * 4u) + v25_];
                metal::float4 v27_ = values.inner[v25_ + v18_];
                metal::float4 _e308 = sum;
                sum = metal::fma(v27_, metal::float4(v26_), _e308);
                uint v28_ = v19_ + 3u;
                float v29_ = weights.inner[(y_2 * 4u) + v28_];
                metal::float4 v30_ = values.inner[v28_ + v18_];
                metal::float4 _e323 = sum;
                sum = metal::fma(v30_, metal::float4(v29_), _e323);
            }
        }
        float _e333 = total;
        exchange.inner[(y_2 * 5u) + x_2] = _e333;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v31_ = y_2 * 5u;
        float v32_ = exchange.inner[v31_];
        float v33_ = exchange.inner[v31_ + 1u];
        float v34_ = exchange.inner[v31_ + 2u];
        float v35_ = exchange.inner[v31_ + 3u];
        float v36_ = ((v32_ + v33_) + v34_) + v35_;
        if (x_2 == 0u) {
            uint _e362 = params.queries;
            if ((first + y_2) < _e362) {
                float _e364 = gf_log(v36_);
                float _e367 = most;
                y1_[0] = (_e367 * 0.6931472) + _e364;
            }
        }
        float v38_ = 1.0 / ((v36_ == 0.0) ? 1.0 : v36_);
        uint _e380 = params.queries;
        if (((first + y_2) < _e380) & ((x_2 >> 2u) == 0u)) {
            uint v39_ = x_2 & 3u;
            metal::float4 _e389 = sum;
            metal::float4 v40_ = _e389 * metal::float4(v38_);
            float v41_ = v40_.x;
            if ((v39_ * 4u) < 1u) {
                y0_[0] = v41_;
            }
            float v42_ = v40_.y;
            if (((v39_ * 4u) + 1u) < 1u) {
                y0_[0] = v42_;
            }
            float v43_ = v40_.z;
            if (((v39_ * 4u) + 2u) < 1u) {
                y0_[0] = v43_;
            }
            float v44_ = v40_.w;
            if (((v39_ * 4u) + 3u) < 1u) {
                y0_[0] = v44_;
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
