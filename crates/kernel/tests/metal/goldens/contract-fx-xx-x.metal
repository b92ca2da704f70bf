// contract f16x1 32x32x32/16x16 a1 b1
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
    uint m;
    uint n;
    uint tiles_m;
    uint tiles_n;
    uint total;
    uint k;
};
typedef float type_2[1];
struct type_3 {
    float inner[1280];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(3)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2 const& x1_ [[buffer(1)]]
, device type_2& y0_ [[buffer(2)]]
, threadgroup type_3& left_0_
, threadgroup type_3& right_0_
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::float4 sum_0_0_ = metal::float4(0.0);
    metal::float4 sum_1_0_ = metal::float4(0.0);
    metal::float4 left_0_2_ = metal::float4(0.0);
    metal::float4 left_1_ = metal::float4(0.0);
    metal::float4 right_0_2_ = metal::float4(0.0);
    metal::float4 right_1_ = metal::float4(0.0);
    uint from_2_ = 0u;
    uint step = {};
    uint id = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.total;
    if (id < _e10) {
        uint subgroup = local_index >> 5u;
        uint lane = local_index & 31u;
        uint subgroup_row = (subgroup >> 1u) * 16u;
        uint subgroup_column = (subgroup & 1u) * 16u;
        uint _e26 = params.tiles_n;
        uint tile_n = id % _e26;
        uint _e30 = params.tiles_n;
        uint _e34 = params.tiles_m;
        uint tile_m = (id / _e30) % _e34;
        uint v0_ = local_index >> 3u;
        uint v1_ = (local_index & 7u) * 4u;
        uint v2_ = (local_index + 128u) >> 3u;
        uint v3_ = local_index >> 3u;
        uint v4_ = (local_index & 7u) * 4u;
        uint v5_ = (local_index + 128u) >> 3u;
        float v6_ = x1_[0];
        float v7_ = x1_[0];
        float v8_ = x1_[0];
        float v9_ = x1_[0];
        uint _e91 = params.k;
        left_0_2_ = metal::select(metal::float4(0.0), metal::float4(v6_, v7_, v8_, v9_), metal::bool4(v0_ < _e91));
        float v10_ = x1_[0];
        float v11_ = x1_[0];
        float v12_ = x1_[0];
        float v13_ = x1_[0];
        uint _e112 = params.k;
        left_1_ = metal::select(metal::float4(0.0), metal::float4(v10_, v11_, v12_, v13_), metal::bool4(v2_ < _e112));
        float v14_ = x0_[0];
        float v15_ = x0_[0];
        float v16_ = x0_[0];
        float v17_ = x0_[0];
        uint _e133 = params.k;
        right_0_2_ = metal::select(metal::float4(0.0), metal::float4(v14_, v15_, v16_, v17_), metal::bool4(v3_ < _e133));
        float v18_ = x0_[0];
        float v19_ = x0_[0];
        float v20_ = x0_[0];
        float v21_ = x0_[0];
        uint _e154 = params.k;
        right_1_ = metal::select(metal::float4(0.0), metal::float4(v18_, v19_, v20_, v21_), metal::bool4(v5_ < _e154));
        uint v22_ = (v0_ * 10u) + (v1_ >> 2u);
        metal::float4 _e163 = left_0_2_;
        metal::uint4 v23_ = as_type<metal::uint4>(_e163);
        metal::uint4 v24_ = v23_ & metal::uint4(2147483647u);
        metal::uint4 v25_ = ((v24_ + ((v24_ >> metal::uint4(13u)) & metal::uint4(1u))) + metal::uint4(4095u)) & metal::uint4(4294959104u);
        metal::uint4 v26_ = metal::select(v25_, as_type<metal::uint4>((as_type<metal::float4>(v24_) + metal::float4(0.5)) - metal::float4(0.5)), v24_ < metal::uint4(947912704u));
        metal::float4 v27_ = as_type<metal::float4>(metal::select(metal::select(v26_, metal::uint4(2139095040u), v26_ >= metal::uint4(1199570944u)), metal::uint4(2143289344u), v24_ > metal::uint4(2139095040u)) | (v23_ & metal::uint4(2147483648u)));
        left_0_.inner[v22_ * 4u] = v27_.x;
        left_0_.inner[(v22_ * 4u) + 1u] = v27_.y;
        left_0_.inner[(v22_ * 4u) + 2u] = v27_.z;
        left_0_.inner[(v22_ * 4u) + 3u] = v27_.w;
        uint v28_ = (v2_ * 10u) + (v1_ >> 2u);
        metal::float4 _e241 = left_1_;
        metal::uint4 v29_ = as_type<metal::uint4>(_e241);
        metal::uint4 v30_ = v29_ & metal::uint4(2147483647u);
        metal::uint4 v31_ = ((v30_ + ((v30_ >> metal::uint4(13u)) & metal::uint4(1u))) + metal::uint4(4095u)) & metal::uint4(4294959104u);
        metal::uint4 v32_ = metal::select(v31_, as_type<metal::uint4>((as_type<metal::float4>(v30_) + metal::float4(0.5)) - metal::float4(0.5)), v30_ < metal::uint4(947912704u));
        metal::float4 v33_ = as_type<metal::float4>(metal::select(metal::select(v32_, metal::uint4(2139095040u), v32_ >= metal::uint4(1199570944u)), metal::uint4(2143289344u), v30_ > metal::uint4(2139095040u)) | (v29_ & metal::uint4(2147483648u)));
        left_0_.inner[v28_ * 4u] = v33_.x;
        left_0_.inner[(v28_ * 4u) + 1u] = v33_.y;
        left_0_.inner[(v28_ * 4u) + 2u] = v33_.z;
        left_0_.inner[(v28_ * 4u) + 3u] = v33_.w;
        uint v34_ = (v3_ * 10u) + (v4_ >> 2u);
        metal::float4 _e319 = right_0_2_;
        metal::uint4 v35_ = as_type<metal::uint4>(_e319);
        metal::uint4 v36_ = v35_ & metal::uint4(2147483647u);
        metal::uint4 v37_ = ((v36_ + ((v36_ >> metal::uint4(13u)) & metal::uint4(1u))) + metal::uint4(4095u)) & metal::uint4(4294959104u);
        metal::uint4 v38_ = metal::select(v37_, as_type<metal::uint4>((as_type<metal::float4>(v36_) + metal::float4(0.5)) - metal::float4(0.5)), v36_ < metal::uint4(947912704u));
        metal::float4 v39_ = as_type<metal::float4>(metal::select(metal::select(v38_, metal::uint4(2139095040u), v38_ >= metal::uint4(1199570944u)), metal::uint4(2143289344u), v36_ > metal::uint4(2139095040u)) | (v35_ & metal::uint4(2147483648u)));
        right_0_.inner[v34_ * 4u] = v39_.x;
        right_0_.inner[(v34_ * 4u) + 1u] = v39_.y;
        right_0_.inner[(v34_ * 4u) + 2u] = v39_.z;
        right_0_.inner[(v34_ * 4u) + 3u] = v39_.w;
        uint v40_ = (v5_ * 10u) + (v4_ >> 2u);
        metal::float4 _e397 = right_1_;
        metal::uint4 v41_ = as_type<metal::uint4>(_e397);
        metal::uint4 v42_ = v41_ & metal::uint4(2147483647u);
        metal::uint4 v43_ = ((v42_ + ((v42_ >> metal::uint4(13u)) & metal::uint4(1u))) + metal::uint4(4095u)) & metal::uint4(4294959104u);
        metal::uint4 v44_ = metal::select(v43_, as_type<metal::uint4>((as_type<metal::float4>(v42_) + metal::float4(0.5)) - metal::float4(0.5)), v42_ < metal::uint4(947912704u));
        metal::float4 v45_ = as_type<metal::float4>(metal::select(metal::select(v44_, metal::uint4(2139095040u), v44_ >= metal::uint4(1199570944u)), metal::uint4(2143289344u), v42_ > metal::uint4(2139095040u)) | (v41_ & metal::uint4(2147483648u)));
        right_0_.inner[v40_ * 4u] = v45_.x;
        right_0_.inner[(v40_ * 4u) + 1u] = v45_.y;
        right_0_.inner[(v40_ * 4u) + 2u] = v45_.z;
        right_0_.inner[(v40_ * 4u) + 3u] = v45_.w;
        float v46_ = x1_[0];
        float v47_ = x1_[0];
        float v48_ = x1_[0];
        float v49_ = x1_[0];
        uint _e489 = params.k;
        left_0_2_ = metal::select(metal::float4(0.0), metal::float4(v46_, v47_, v48_, v49_), metal::bool4((32u + v0_) < _e489));
        float v50_ = x1_[0];
        float v51_ = x1_[0];
        float v52_ = x1_[0];
        float v53_ = x1_[0];
        uint _e512 = params.k;
        left_1_ = metal::select(metal::float4(0.0), metal::float4(v50_, v51_, v52_, v53_), metal::bool4((32u + v2_) < _e512));
        float v54_ = x0_[0];
        float v55_ = x0_[0];
        float v56_ = x0_[0];
        float v57_ = x0_[0];
        uint _e535 = params.k;
        right_0_2_ = metal::select(metal::float4(0.0), metal::float4(v54_, v55_, v56_, v57_), metal::bool4((32u + v3_) < _e535));
        float v58_ = x0_[0];
        float v59_ = x0_[0];
        float v60_ = x0_[0];
        float v61_ = x0_[0];
        uint _e558 = params.k;
        right_1_ = metal::select(metal::float4(0.0), metal::float4(v58_, v59_, v60_, v61_), metal::bool4((32u + v5_) < _e558));
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e1048 = from_2_;
                from_2_ = _e1048 + 32u;
            }
            loop_init = false;
            uint _e564 = from_2_;
            uint _e567 = params.k;
            if (_e564 < _e567) {
            } else {
                break;
            }
            {
                step = 0u;
                bool loop_init_1 = true;
                while(true) {
                    if (!loop_init_1) {
                        uint _e642 = step;
                        step = _e642 + 1u;
                    }
                    loop_init_1 = false;
                    uint _e571 = step;
                    if (_e571 < 32u) {
                    } else {
                        break;
                    }
                    {
                        uint _e575 = step;
                        float v62_ = left_0_.inner[(_e575 * 40u) + (subgroup_row + (lane >> 2u))];
                        uint _e585 = step;
                        float v63_ = left_0_.inner[(_e585 * 40u) + ((subgroup_row + 8u) + (lane >> 2u))];
                        uint v64_ = subgroup_column + ((lane & 3u) * 4u);
                        uint _e602 = step;
                        float v65_ = right_0_.inner[(_e602 * 40u) + v64_];
                        uint _e609 = step;
                        float v66_ = right_0_.inner[(_e609 * 40u) + (v64_ + 1u)];
                        uint _e618 = step;
                        float v67_ = right_0_.inner[(_e618 * 40u) + (v64_ + 2u)];
                        uint _e627 = step;
                        float v68_ = right_0_.inner[(_e627 * 40u) + (v64_ + 3u)];
                        metal::float4 v69_ = metal::float4(v65_, v66_, v67_, v68_);
                        metal::float4 _e637 = sum_0_0_;
                        sum_0_0_ = metal::fma(v69_, metal::float4(v62_), _e637);
                        metal::float4 _e640 = sum_1_0_;
                        sum_1_0_ = metal::fma(v69_, metal::float4(v63_), _e640);
                    }
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint v70_ = (v0_ * 10u) + (v1_ >> 2u);
                metal::float4 _e650 = left_0_2_;
                metal::uint4 v71_ = as_type<metal::uint4>(_e650);
                metal::uint4 v72_ = v71_ & metal::uint4(2147483647u);
                metal::uint4 v73_ = ((v72_ + ((v72_ >> metal::uint4(13u)) & metal::uint4(1u))) + metal::uint4(4095u)) & metal::uint4(4294959104u);
                metal::uint4 v74_ = metal::select(v73_, as_type<metal::uint4>((as_type<metal::float4>(v72_) + metal::float4(0.5)) - metal::float4(0.5)), v72_ < metal::uint4(947912704u));
                metal::float4 v75_ = as_type<metal::float4>(metal::select(metal::select(v74_, metal::uint4(2139095040u), v74_ >= metal::uint4(1199570944u)), metal::uint4(2143289344u), v72_ > metal::uint4(2139095040u)) | (v71_ & metal::uint4(2147483648u)));
                left_0_.inner[v70_ * 4u] = v75_.x;
                left_0_.inner[(v70_ * 4u) + 1u] = v75_.y;
                left_0_.inner[(v70_ * 4u) + 2u] = v75_.z;
                left_0_.inner[(v70_ * 4u) + 3u] = v75_.w;
                uint v76_ = (v2_ * 10u) + (v1_ >> 2u);
                metal::float4 _e728 = left_1_;
                metal::uint4 v77_ = as_type<metal::uint4>(_e728);
                metal::uint4 v78_ = v77_ & metal::uint4(2147483647u);
                metal::uint4 v79_ = ((v78_ + ((v78_ >> metal::uint4(13u)) & metal::uint4(1u))) + metal::uint4(4095u)) & metal::uint4(4294959104u);
                metal::uint4 v80_ = metal::select(v79_, as_type<metal::uint4>((as_type<metal::float4>(v78_) + metal::float4(0.5)) - metal::float4(0.5)), v78_ < metal::uint4(947912704u));
                metal::float4 v81_ = as_type<metal::float4>(metal::select(metal::select(v80_, metal::uint4(2139095040u), v80_ >= metal::uint4(1199570944u)), metal::uint4(2143289344u), v78_ > metal::uint4(2139095040u)) | (v77_ & metal::uint4(2147483648u)));
                left_0_.inner[v76_ * 4u] = v81_.x;
                left_0_.inner[(v76_ * 4u) + 1u] = v81_.y;
                left_0_.inner[(v76_ * 4u) + 2u] = v81_.z;
                left_0_.inner[(v76_ * 4u) + 3u] = v81_.w;
                uint v82_ = (v3_ * 10u) + (v4_ >> 2u);
                metal::float4 _e806 = right_0_2_;
                metal::uint4 v83_ = as_type<metal::uint4>(_e806);
                metal::uint4 v84_ = v83_ & metal::uint4(2147483647u);
                metal::uint4 v85_ = ((v84_ + ((v84_ >> metal::uint4(13u)) & metal::uint4(1u))) + metal::uint4(4095u)) & metal::uint4(4294959104u);
                metal::uint4 v86_ = metal::select(v85_, as_type<metal::uint4>((as_type<metal::float4>(v84_) + metal::float4(0.5)) - metal::float4(0.5)), v84_ < metal::uint4(947912704u));
                metal::float4 v87_ = as_type<metal::float4>(metal::select(metal::select(v86_, metal::uint4(2139095040u), v86_ >= metal::uint4(1199570944u)), metal::uint4(2143289344u), v84_ > metal::uint4(2139095040u)) | (v83_ & metal::uint4(2147483648u)));
                right_0_.inner[v82_ * 4u] = v87_.x;
                right_0_.inner[(v82_ * 4u) + 1u] = v87_.y;
                right_0_.inner[(v82_ * 4u) + 2u] = v87_.z;
                right_0_.inner[(v82_ * 4u) + 3u] = v87_.w;
                uint v88_ = (v5_ * 10u) + (v4_ >> 2u);
                metal::float4 _e884 = right_1_;
                metal::uint4 v89_ = as_type<metal::uint4>(_e884);
                metal::uint4 v90_ = v89_ & metal::uint4(2147483647u);
                metal::uint4 v91_ = ((v90_ + ((v90_ >> metal::uint4(13u)) & metal::uint4(1u))) + metal::uint4(4095u)) & metal::uint4(4294959104u);
                metal::uint4 v92_ = metal::select(v91_, as_type<metal::uint4>((as_type<metal::float4>(v90_) + metal::float4(0.5)) - metal::float4(0.5)), v90_ < metal::uint4(947912704u));
                metal::float4 v93_ = as_type<metal::float4>(metal::select(metal::select(v92_, metal::uint4(2139095040u), v92_ >= metal::uint4(1199570944u)), metal::uint4(2143289344u), v90_ > metal::uint4(2139095040u)) | (v89_ & metal::uint4(2147483648u)));
                right_0_.inner[v88_ * 4u] = v93_.x;
                right_0_.inner[(v88_ * 4u) + 1u] = v93_.y;
                right_0_.inner[(v88_ * 4u) + 2u] = v93_.z;
                right_0_.inner[(v88_ * 4u) + 3u] = v93_.w;
                uint _e957 = from_2_;
                uint v94_ = _e957 + 64u;
                float v95_ = x1_[0];
                float v96_ = x1_[0];
                float v97_ = x1_[0];
                float v98_ = x1_[0];
                uint _e978 = params.k;
                left_0_2_ = metal::select(metal::float4(0.0), metal::float4(v95_, v96_, v97_, v98_), metal::bool4((v94_ + v0_) < _e978));
                float v99_ = x1_[0];
                float v100_ = x1_[0];
                float v101_ = x1_[0];
                float v102_ = x1_[0];
                uint _e1000 = params.k;
                left_1_ = metal::select(metal::float4(0.0), metal::float4(v99_, v100_, v101_, v102_), metal::bool4((v94_ + v2_) < _e1000));
                float v103_ = x0_[0];
                float v104_ = x0_[0];
                float v105_ = x0_[0];
                float v106_ = x0_[0];
                uint _e1022 = params.k;
                right_0_2_ = metal::select(metal::float4(0.0), metal::float4(v103_, v104_, v105_, v106_), metal::bool4((v94_ + v3_) < _e1022));
                float v107_ = x0_[0];
                float v108_ = x0_[0];
                float v109_ = x0_[0];
                float v110_ = x0_[0];
                uint _e1044 = params.k;
                right_1_ = metal::select(metal::float4(0.0), metal::float4(v107_, v108_, v109_, v110_), metal::bool4((v94_ + v5_) < _e1044));
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint v111_ = (tile_n * 32u) + (subgroup_column + ((lane & 3u) * 4u));
        uint v112_ = v111_ + 1u;
        uint v113_ = v111_ + 2u;
        uint v114_ = v111_ + 3u;
        uint _e1073 = params.m;
        if (((tile_m * 32u) + (subgroup_row + (lane >> 2u))) < _e1073) {
            metal::float4 v115_ = sum_0_0_;
            uint _e1078 = params.n;
            if (v111_ < _e1078) {
                y0_[0] = v115_.x;
            }
            uint _e1085 = params.n;
            if (v112_ < _e1085) {
                y0_[0] = v115_.y;
            }
            uint _e1092 = params.n;
            if (v113_ < _e1092) {
                y0_[0] = v115_.z;
            }
            uint _e1099 = params.n;
            if (v114_ < _e1099) {
                y0_[0] = v115_.w;
            }
        }
        uint _e1114 = params.m;
        if (((tile_m * 32u) + ((subgroup_row + 8u) + (lane >> 2u))) < _e1114) {
            metal::float4 v116_ = sum_1_0_;
            uint _e1119 = params.n;
            if (v111_ < _e1119) {
                y0_[0] = v116_.x;
            }
            uint _e1126 = params.n;
            if (v112_ < _e1126) {
                y0_[0] = v116_.y;
            }
            uint _e1133 = params.n;
            if (v113_ < _e1133) {
                y0_[0] = v116_.z;
            }
            uint _e1140 = params.n;
            if (v114_ < _e1140) {
                y0_[0] = v116_.w;
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
