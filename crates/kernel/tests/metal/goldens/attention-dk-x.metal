// attention dk 4x4 by 4x4
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
, device type_2 const& x6_ [[buffer(6)]]
, device type_2& y0_ [[buffer(7)]]
, threadgroup type_4& keys
, threadgroup type_4& values
, threadgroup type_4& queries
, threadgroup type_4& gradients
, threadgroup type_5& score_gradients
, constant _mslBufferSizes& _buffer_sizes [[buffer(9)]]
) {
    metal::float4 sum = metal::float4(0.0);
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
        uint head = id % _e14;
        uint _e18 = params.heads;
        uint first = (id / _e18) * 4u;
        uint y_1 = local_index >> 2u;
        uint x_1 = local_index & 3u;
        uint _e31 = params.queries;
        uint v0_ = metal::min((metal::max(_e31, 0u) + 3u) >> 2u, 1u);
        uint v1_ = head * 3u;
        uint v2_ = v0_ * 3u;
        uint v3_ = metal::max(v0_, 1u);
        uint v4_ = metal::min(1u, metal::max(v2_, 1u) - 1u);
        uint v5_ = v1_ + (v4_ / v3_);
        uint v6_ = (v4_ % v3_) * 4u;
        uint v7_ = v6_ + metal::min(local_index, 3u);
        uint _e68 = params.queries;
        uint v8_ = metal::min(v7_, _e68 - 1u);
        uint v9_ = v5_ % 3u;
        uint v10_ = v5_ / 3u;
        float v11_ = x0_[((v10_ * 18u) + (v9_ * 3u)) + (v8_ * 9u)];
        float v12_ = x0_[(((v10_ * 18u) + (v9_ * 3u)) + (v8_ * 9u)) + 1u];
        float v13_ = x0_[(((v10_ * 18u) + (v9_ * 3u)) + (v8_ * 9u)) + 2u];
        uint _e122 = params.queries;
        fetched = metal::select(metal::float4(0.0), metal::float4(v11_, v12_, v13_, 0.0) * metal::float4(0.43280852), metal::bool4(v7_ < _e122));
        uint v14_ = v6_ + metal::min(local_index, 3u);
        uint _e131 = params.queries;
        uint v15_ = metal::min(v14_, _e131 - 1u);
        uint v16_ = v5_ % 3u;
        uint v17_ = v5_ / 3u;
        float v18_ = x3_[((v17_ * 18u) + (v16_ * 3u)) + (v15_ * 9u)];
        float v19_ = x3_[(((v17_ * 18u) + (v16_ * 3u)) + (v15_ * 9u)) + 1u];
        float v20_ = x3_[(((v17_ * 18u) + (v16_ * 3u)) + (v15_ * 9u)) + 2u];
        uint _e182 = params.queries;
        fetched_2_ = metal::select(metal::float4(0.0), metal::float4(v18_, v19_, v20_, 0.0), metal::bool4(v14_ < _e182));
        uint v21_ = first + metal::min(local_index, 3u);
        uint _e203 = params.keys;
        uint v22_ = metal::min(v21_, _e203 - 1u);
        float v23_ = x1_[(head * 15u) + (v22_ * 3u)];
        float v24_ = x1_[((head * 15u) + (v22_ * 3u)) + 1u];
        float v25_ = x1_[((head * 15u) + (v22_ * 3u)) + 2u];
        uint _e241 = params.keys;
        fetched_3_ = metal::select(metal::float4(0.0), metal::float4(v23_, v24_, v25_, 0.0), metal::bool4(v21_ < _e241));
        uint v26_ = first + metal::min(local_index, 3u);
        uint _e250 = params.keys;
        uint v27_ = metal::min(v26_, _e250 - 1u);
        float v28_ = x2_[(head * 15u) + (v27_ * 3u)];
        float v29_ = x2_[((head * 15u) + (v27_ * 3u)) + 1u];
        float v30_ = x2_[((head * 15u) + (v27_ * 3u)) + 2u];
        uint _e288 = params.keys;
        fetched_4_ = metal::select(metal::float4(0.0), metal::float4(v28_, v29_, v30_, 0.0), metal::bool4(v26_ < _e288));
        uint v31_ = metal::min(local_index, 3u);
        uint _e296 = params.queries;
        uint v32_ = metal::min(v31_, _e296 - 1u);
        uint v33_ = v1_ % 3u;
        uint v34_ = v1_ / 3u;
        float v35_ = x0_[((v34_ * 18u) + (v33_ * 3u)) + (v32_ * 9u)];
        float v36_ = x0_[(((v34_ * 18u) + (v33_ * 3u)) + (v32_ * 9u)) + 1u];
        float v37_ = x0_[(((v34_ * 18u) + (v33_ * 3u)) + (v32_ * 9u)) + 2u];
        uint _e350 = params.queries;
        fetched_5_ = metal::select(metal::float4(0.0), metal::float4(v35_, v36_, v37_, 0.0) * metal::float4(0.43280852), metal::bool4(v31_ < _e350));
        uint v38_ = metal::min(local_index, 3u);
        uint _e358 = params.queries;
        uint v39_ = metal::min(v38_, _e358 - 1u);
        uint v40_ = v1_ % 3u;
        uint v41_ = v1_ / 3u;
        float v42_ = x3_[((v41_ * 18u) + (v40_ * 3u)) + (v39_ * 9u)];
        float v43_ = x3_[(((v41_ * 18u) + (v40_ * 3u)) + (v39_ * 9u)) + 1u];
        float v44_ = x3_[(((v41_ * 18u) + (v40_ * 3u)) + (v39_ * 9u)) + 2u];
        uint _e409 = params.queries;
        fetched_6_ = metal::select(metal::float4(0.0), metal::float4(v42_, v43_, v44_, 0.0), metal::bool4(v38_ < _e409));
        if (local_index < 4u) {
            metal::float4 _e417 = fetched_3_;
            keys.inner[local_index] = _e417;
        }
        if (local_index < 4u) {
            metal::float4 _e422 = fetched_4_;
            values.inner[local_index] = _e422;
        }
        if (local_index < 4u) {
            metal::float4 _e427 = fetched_5_;
            queries.inner[local_index] = _e427;
        }
        if (local_index < 4u) {
            metal::float4 _e432 = fetched_6_;
            gradients.inner[local_index] = _e432;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e776 = turn;
                turn = _e776 + 1u;
            }
            loop_init = false;
            uint _e435 = turn;
            if (_e435 < v2_) {
            } else {
                break;
            }
            {
                uint v45_ = metal::max(v0_, 1u);
                uint _e439 = turn;
                uint v46_ = metal::min(_e439, metal::max(v2_, 1u) - 1u);
                uint v47_ = v1_ + (v46_ / v45_);
                uint v48_ = metal::max(v0_, 1u);
                uint _e449 = turn;
                uint v49_ = metal::min(_e449 + 2u, metal::max(v2_, 1u) - 1u);
                uint v50_ = v1_ + (v49_ / v48_);
                uint v51_ = (v49_ % v48_) * 4u;
                uint v52_ = ((v46_ % v45_) * 4u) + x_1;
                uint _e468 = params.queries;
                uint v53_ = metal::min(v52_, _e468 - 1u);
                float v54_ = x4_[(v47_ * 2u) + v53_];
                float v55_ = v54_ * 1.442695;
                float v56_ = x5_[(v47_ * 2u) + v53_];
                product = 0.0;
                metal::float4 v57_ = keys.inner[y_1];
                metal::float4 v58_ = queries.inner[x_1];
                float _e502 = product;
                product = metal::fma(v57_.w, v58_.w, metal::fma(v57_.z, v58_.z, metal::fma(v57_.y, v58_.y, metal::fma(v57_.x, v58_.x, _e502))));
                product_2_ = 0.0;
                metal::float4 v59_ = values.inner[y_1];
                metal::float4 v60_ = gradients.inner[x_1];
                float _e523 = product_2_;
                product_2_ = metal::fma(v59_.w, v60_.w, metal::fma(v59_.z, v60_.z, metal::fma(v59_.y, v60_.y, metal::fma(v59_.x, v60_.x, _e523))));
                uint v61_ = first + y_1;
                uint _e536 = params.keys;
                float v62_ = x6_[((v47_ % 3u) * 5u) + metal::min(v61_, _e536 - 1u)];
                float _e544 = product;
                float _e557 = gf_exp2_(metal::fma(v62_, 1.442695, _e544) - (((v55_ > -340282350000000000000000000000000000000.0) | ((as_type<uint>(v55_) & 2147483647u) > 2139095040u)) ? v55_ : -340282350000000000000000000000000000000.0));
                float _e564 = product_2_;
                uint _e569 = params.queries;
                uint _e573 = params.keys;
                score_gradients.inner[(y_1 * 4u) + x_1] = ((v52_ < _e569) & (v61_ < _e573)) ? (_e557 * (_e564 - v56_)) : 0.0;
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint v64_ = metal::min(x_1 & 3u, 0u);
                uint v65_ = (x_1 >> 2u) * 4u;
                float v66_ = score_gradients.inner[(y_1 * 4u) + v65_];
                metal::float4 v67_ = queries.inner[v65_ + v64_];
                metal::float4 _e596 = sum;
                sum = metal::fma(v67_, metal::float4(v66_), _e596);
                uint v68_ = v65_ + 1u;
                float v69_ = score_gradients.inner[(y_1 * 4u) + v68_];
                metal::float4 v70_ = queries.inner[v68_ + v64_];
                metal::float4 _e611 = sum;
                sum = metal::fma(v70_, metal::float4(v69_), _e611);
                uint v71_ = v65_ + 2u;
                float v72_ = score_gradients.inner[(y_1 * 4u) + v71_];
                metal::float4 v73_ = queries.inner[v71_ + v64_];
                metal::float4 _e626 = sum;
                sum = metal::fma(v73_, metal::float4(v72_), _e626);
                uint v74_ = v65_ + 3u;
                float v75_ = score_gradients.inner[(y_1 * 4u) + v74_];
                metal::float4 v76_ = queries.inner[v74_ + v64_];
                metal::float4 _e641 = sum;
                sum = metal::fma(v76_, metal::float4(v75_), _e641);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                if (local_index < 4u) {
                    metal::float4 _e647 = fetched;
                    queries.inner[local_index] = _e647;
                }
                uint v77_ = v51_ + metal::min(local_index, 3u);
                uint _e653 = params.queries;
                uint v78_ = metal::min(v77_, _e653 - 1u);
                uint v79_ = v50_ % 3u;
                uint v80_ = v50_ / 3u;
                float v81_ = x0_[((v80_ * 18u) + (v79_ * 3u)) + (v78_ * 9u)];
                float v82_ = x0_[(((v80_ * 18u) + (v79_ * 3u)) + (v78_ * 9u)) + 1u];
                float v83_ = x0_[(((v80_ * 18u) + (v79_ * 3u)) + (v78_ * 9u)) + 2u];
                uint _e707 = params.queries;
                fetched = metal::select(metal::float4(0.0), metal::float4(v81_, v82_, v83_, 0.0) * metal::float4(0.43280852), metal::bool4(v77_ < _e707));
                if (local_index < 4u) {
                    metal::float4 _e715 = fetched_2_;
                    gradients.inner[local_index] = _e715;
                }
                uint v84_ = v51_ + metal::min(local_index, 3u);
                uint _e721 = params.queries;
                uint v85_ = metal::min(v84_, _e721 - 1u);
                uint v86_ = v50_ % 3u;
                uint v87_ = v50_ / 3u;
                float v88_ = x3_[((v87_ * 18u) + (v86_ * 3u)) + (v85_ * 9u)];
                float v89_ = x3_[(((v87_ * 18u) + (v86_ * 3u)) + (v85_ * 9u)) + 1u];
                float v90_ = x3_[(((v87_ * 18u) + (v86_ * 3u)) + (v85_ * 9u)) + 2u];
                uint _e772 = params.queries;
                fetched_2_ = metal::select(metal::float4(0.0), metal::float4(v88_, v89_, v90_, 0.0), metal::bool4(v84_ < _e772));
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint v91_ = first + y_1;
        uint _e782 = params.keys;
        if ((v91_ < _e782) & ((x_1 >> 2u) == 0u)) {
            uint v92_ = x_1 & 3u;
            metal::float4 _e791 = sum;
            metal::float4 v93_ = _e791 * metal::float4(0.6931472);
            uint v94_ = v92_ * 4u;
            float v95_ = v93_.x;
            if (v94_ < 3u) {
                y0_[((head * 15u) + (v91_ * 3u)) + v94_] = v95_;
            }
            uint v96_ = (v92_ * 4u) + 1u;
            float v97_ = v93_.y;
            if (v96_ < 3u) {
                y0_[((head * 15u) + (v91_ * 3u)) + v96_] = v97_;
            }
            uint v98_ = (v92_ * 4u) + 2u;
            float v99_ = v93_.z;
            if (v98_ < 3u) {
                y0_[((head * 15u) + (v91_ * 3u)) + v98_] = v99_;
            }
            uint v100_ = (v92_ * 4u) + 3u;
            float v101_ = v93_.w;
            if (v100_ < 3u) {
                y0_[((head * 15u) + (v91_ * 3u)) + v100_] = v101_;
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
