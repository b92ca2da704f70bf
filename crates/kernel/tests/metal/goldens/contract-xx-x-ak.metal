// contract 64x16x32/4x4 a4k b1
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
typedef metal::float4 type_4[1];
struct type_5 {
    metal::float4 inner[544];
};
struct type_6 {
    metal::float4 inner[160];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(3)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_4 const& x1_ [[buffer(1)]]
, device type_2& y0_ [[buffer(2)]]
, threadgroup type_5& left
, threadgroup type_6& right
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::float4 sum_0_0_ = metal::float4(0.0);
    metal::float4 sum_1_0_ = metal::float4(0.0);
    metal::float4 sum_2_0_ = metal::float4(0.0);
    metal::float4 sum_3_0_ = metal::float4(0.0);
    uint from_2_ = 0u;
    uint step = {};
    uint id = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.total;
    if (id < _e10) {
        uint _e14 = params.tiles_n;
        uint tile_n = id % _e14;
        uint _e18 = params.tiles_n;
        uint _e22 = params.tiles_m;
        uint tile_m = (id / _e18) % _e22;
        uint v0_ = local_index & 15u;
        uint tx = (v0_ & 1u) + ((v0_ >> 3u) * 2u);
        uint ty = ((local_index >> 4u) * 4u) + ((v0_ >> 1u) & 3u);
        uint product = (local_index & 7u) * 4u;
        uint v1_ = local_index >> 3u;
        uint v2_ = v1_ >> 2u;
        uint v3_ = v1_ & 3u;
        uint v4_ = (local_index + 64u) >> 3u;
        uint v5_ = v4_ >> 2u;
        uint v6_ = v4_ & 3u;
        uint v7_ = (local_index + 128u) >> 3u;
        uint v8_ = v7_ >> 2u;
        uint v9_ = v7_ & 3u;
        uint v10_ = (local_index + 192u) >> 3u;
        uint v11_ = v10_ >> 2u;
        uint v12_ = v10_ & 3u;
        uint v13_ = (local_index + 256u) >> 3u;
        uint v14_ = v13_ >> 2u;
        uint v15_ = v13_ & 3u;
        uint v16_ = (local_index + 320u) >> 3u;
        uint v17_ = v16_ >> 2u;
        uint v18_ = v16_ & 3u;
        uint v19_ = (local_index + 384u) >> 3u;
        uint v20_ = v19_ >> 2u;
        uint v21_ = v19_ & 3u;
        uint v22_ = (local_index + 448u) >> 3u;
        uint v23_ = v22_ >> 2u;
        uint v24_ = v22_ & 3u;
        uint right_first = tile_n * 16u;
        uint v25_ = local_index & 31u;
        uint v26_ = local_index >> 5u;
        uint _e128 = params.n;
        uint v27_ = _e128 - 1u;
        uint v28_ = right_first + (v26_ * 4u);
        uint v29_ = metal::min(v28_, v27_);
        uint v30_ = v29_ % 3u;
        uint v31_ = v29_ / 3u;
        uint v32_ = metal::min(v28_ + 1u, v27_);
        uint v33_ = v32_ % 3u;
        uint v34_ = v32_ / 3u;
        uint v35_ = metal::min(v28_ + 2u, v27_);
        uint v36_ = v35_ % 3u;
        uint v37_ = v35_ / 3u;
        uint v38_ = metal::min(v28_ + 3u, v27_);
        uint v39_ = v38_ % 3u;
        uint v40_ = v38_ / 3u;
        uint v41_ = (local_index + 64u) >> 5u;
        uint _e166 = params.n;
        uint v42_ = _e166 - 1u;
        uint v43_ = right_first + (v41_ * 4u);
        uint v44_ = metal::min(v43_, v42_);
        uint v45_ = v44_ % 3u;
        uint v46_ = v44_ / 3u;
        uint v47_ = metal::min(v43_ + 1u, v42_);
        uint v48_ = v47_ % 3u;
        uint v49_ = v47_ / 3u;
        uint v50_ = metal::min(v43_ + 2u, v42_);
        uint v51_ = v50_ % 3u;
        uint v52_ = v50_ / 3u;
        uint v53_ = metal::min(v43_ + 3u, v42_);
        uint v54_ = v53_ % 3u;
        uint v55_ = v53_ / 3u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e1405 = from_2_;
                from_2_ = _e1405 + 32u;
            }
            loop_init = false;
            uint _e200 = from_2_;
            uint _e203 = params.k;
            if (_e200 < _e203) {
            } else {
                break;
            }
            {
                uint _e205 = from_2_;
                uint v56_ = _e205 + product;
                uint _e210 = params.k;
                metal::float4 v57_ = x1_[metal::min(v56_, _e210 - 4u) >> 2u];
                uint _e222 = params.k;
                metal::float4 v58_ = metal::select(metal::float4(0.0), v57_, metal::bool4(v56_ < _e222));
                uint _e226 = from_2_;
                uint v59_ = _e226 + product;
                uint _e231 = params.k;
                metal::float4 v60_ = x1_[metal::min(v59_, _e231 - 4u) >> 2u];
                uint _e243 = params.k;
                metal::float4 v61_ = metal::select(metal::float4(0.0), v60_, metal::bool4(v59_ < _e243));
                uint _e247 = from_2_;
                uint v62_ = _e247 + product;
                uint _e252 = params.k;
                metal::float4 v63_ = x1_[metal::min(v62_, _e252 - 4u) >> 2u];
                uint _e264 = params.k;
                metal::float4 v64_ = metal::select(metal::float4(0.0), v63_, metal::bool4(v62_ < _e264));
                uint _e268 = from_2_;
                uint v65_ = _e268 + product;
                uint _e273 = params.k;
                metal::float4 v66_ = x1_[metal::min(v65_, _e273 - 4u) >> 2u];
                uint _e285 = params.k;
                metal::float4 v67_ = metal::select(metal::float4(0.0), v66_, metal::bool4(v65_ < _e285));
                uint _e289 = from_2_;
                uint v68_ = _e289 + product;
                uint _e294 = params.k;
                metal::float4 v69_ = x1_[metal::min(v68_, _e294 - 4u) >> 2u];
                uint _e306 = params.k;
                metal::float4 v70_ = metal::select(metal::float4(0.0), v69_, metal::bool4(v68_ < _e306));
                uint _e310 = from_2_;
                uint v71_ = _e310 + product;
                uint _e315 = params.k;
                metal::float4 v72_ = x1_[metal::min(v71_, _e315 - 4u) >> 2u];
                uint _e327 = params.k;
                metal::float4 v73_ = metal::select(metal::float4(0.0), v72_, metal::bool4(v71_ < _e327));
                uint _e331 = from_2_;
                uint v74_ = _e331 + product;
                uint _e336 = params.k;
                metal::float4 v75_ = x1_[metal::min(v74_, _e336 - 4u) >> 2u];
                uint _e348 = params.k;
                metal::float4 v76_ = metal::select(metal::float4(0.0), v75_, metal::bool4(v74_ < _e348));
                uint _e352 = from_2_;
                uint v77_ = _e352 + product;
                uint _e357 = params.k;
                metal::float4 v78_ = x1_[metal::min(v77_, _e357 - 4u) >> 2u];
                uint _e369 = params.k;
                metal::float4 v79_ = metal::select(metal::float4(0.0), v78_, metal::bool4(v77_ < _e369));
                uint v80_ = (product * 17u) + (v2_ ^ ((product >> 3u) & 3u));
                left.inner[v80_][v3_] = v58_.x;
                left.inner[v80_ + 17u][v3_] = v58_.y;
                left.inner[v80_ + 34u][v3_] = v58_.z;
                left.inner[v80_ + 51u][v3_] = v58_.w;
                uint v81_ = (product * 17u) + (v5_ ^ ((product >> 3u) & 3u));
                left.inner[v81_][v6_] = v61_.x;
                left.inner[v81_ + 17u][v6_] = v61_.y;
                left.inner[v81_ + 34u][v6_] = v61_.z;
                left.inner[v81_ + 51u][v6_] = v61_.w;
                uint v82_ = (product * 17u) + (v8_ ^ ((product >> 3u) & 3u));
                left.inner[v82_][v9_] = v64_.x;
                left.inner[v82_ + 17u][v9_] = v64_.y;
                left.inner[v82_ + 34u][v9_] = v64_.z;
                left.inner[v82_ + 51u][v9_] = v64_.w;
                uint v83_ = (product * 17u) + (v11_ ^ ((product >> 3u) & 3u));
                left.inner[v83_][v12_] = v67_.x;
                left.inner[v83_ + 17u][v12_] = v67_.y;
                left.inner[v83_ + 34u][v12_] = v67_.z;
                left.inner[v83_ + 51u][v12_] = v67_.w;
                uint v84_ = (product * 17u) + (v14_ ^ ((product >> 3u) & 3u));
                left.inner[v84_][v15_] = v70_.x;
                left.inner[v84_ + 17u][v15_] = v70_.y;
                left.inner[v84_ + 34u][v15_] = v70_.z;
                left.inner[v84_ + 51u][v15_] = v70_.w;
                uint v85_ = (product * 17u) + (v17_ ^ ((product >> 3u) & 3u));
                left.inner[v85_][v18_] = v73_.x;
                left.inner[v85_ + 17u][v18_] = v73_.y;
                left.inner[v85_ + 34u][v18_] = v73_.z;
                left.inner[v85_ + 51u][v18_] = v73_.w;
                uint v86_ = (product * 17u) + (v20_ ^ ((product >> 3u) & 3u));
                left.inner[v86_][v21_] = v76_.x;
                left.inner[v86_ + 17u][v21_] = v76_.y;
                left.inner[v86_ + 34u][v21_] = v76_.z;
                left.inner[v86_ + 51u][v21_] = v76_.w;
                uint v87_ = (product * 17u) + (v23_ ^ ((product >> 3u) & 3u));
                left.inner[v87_][v24_] = v79_.x;
                left.inner[v87_ + 17u][v24_] = v79_.y;
                left.inner[v87_ + 34u][v24_] = v79_.z;
                left.inner[v87_ + 51u][v24_] = v79_.w;
                uint _e613 = from_2_;
                uint v88_ = _e613 + v25_;
                uint _e617 = params.k;
                uint v89_ = metal::min(v88_, _e617 - 1u);
                uint v90_ = v89_ % 3u;
                uint v91_ = v89_ / 3u;
                float v92_ = x0_[(((v31_ * 5u) + v30_) + (v91_ * 5u)) + v90_];
                float v93_ = x0_[(((v34_ * 5u) + v33_) + (v91_ * 5u)) + v90_];
                float v94_ = x0_[(((v37_ * 5u) + v36_) + (v91_ * 5u)) + v90_];
                float v95_ = x0_[(((v40_ * 5u) + v39_) + (v91_ * 5u)) + v90_];
                uint _e665 = from_2_;
                uint v96_ = _e665 + v25_;
                uint _e669 = params.k;
                uint v97_ = metal::min(v96_, _e669 - 1u);
                uint v98_ = v97_ % 3u;
                uint v99_ = v97_ / 3u;
                float v100_ = x0_[(((v46_ * 5u) + v45_) + (v99_ * 5u)) + v98_];
                float v101_ = x0_[(((v49_ * 5u) + v48_) + (v99_ * 5u)) + v98_];
                float v102_ = x0_[(((v52_ * 5u) + v51_) + (v99_ * 5u)) + v98_];
                float v103_ = x0_[(((v55_ * 5u) + v54_) + (v99_ * 5u)) + v98_];
                uint _e727 = params.k;
                right.inner[(v25_ * 5u) + v26_] = metal::select(metal::float4(0.0), metal::float4(v92_, v93_, v94_, v95_), metal::bool4(v88_ < _e727));
                uint _e741 = params.k;
                right.inner[(v25_ * 5u) + v41_] = metal::select(metal::float4(0.0), metal::float4(v100_, v101_, v102_, v103_), metal::bool4(v96_ < _e741));
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                step = 0u;
                bool loop_init_1 = true;
                while(true) {
                    if (!loop_init_1) {
                        uint _e1402 = step;
                        step = _e1402 + 16u;
                    }
                    loop_init_1 = false;
                    uint _e747 = step;
                    if (_e747 < 32u) {
                    } else {
                        break;
                    }
                    {
                        uint _e751 = step;
                        uint _e754 = step;
                        metal::float4 v104_ = left.inner[(_e751 * 17u) + (ty ^ ((_e754 >> 3u) & 3u))];
                        uint _e764 = step;
                        metal::float4 v105_ = right.inner[(_e764 * 5u) + tx];
                        metal::float4 _e772 = sum_0_0_;
                        sum_0_0_ = metal::fma(v105_, metal::float4(v104_.x), _e772);
                        metal::float4 _e776 = sum_1_0_;
                        sum_1_0_ = metal::fma(v105_, metal::float4(v104_.y), _e776);
                        metal::float4 _e780 = sum_2_0_;
                        sum_2_0_ = metal::fma(v105_, metal::float4(v104_.z), _e780);
                        metal::float4 _e784 = sum_3_0_;
                        sum_3_0_ = metal::fma(v105_, metal::float4(v104_.w), _e784);
                        uint _e787 = step;
                        uint _e790 = step;
                        metal::float4 v106_ = left.inner[((_e787 * 17u) + (ty ^ ((_e790 >> 3u) & 3u))) + 17u];
                        uint _e802 = step;
                        metal::float4 v107_ = right.inner[((_e802 * 5u) + tx) + 5u];
                        metal::float4 _e812 = sum_0_0_;
                        sum_0_0_ = metal::fma(v107_, metal::float4(v106_.x), _e812);
                        metal::float4 _e816 = sum_1_0_;
                        sum_1_0_ = metal::fma(v107_, metal::float4(v106_.y), _e816);
                        metal::float4 _e820 = sum_2_0_;
                        sum_2_0_ = metal::fma(v107_, metal::float4(v106_.z), _e820);
                        metal::float4 _e824 = sum_3_0_;
                        sum_3_0_ = metal::fma(v107_, metal::float4(v106_.w), _e824);
                        uint _e827 = step;
                        uint _e830 = step;
                        metal::float4 v108_ = left.inner[((_e827 * 17u) + (ty ^ ((_e830 >> 3u) & 3u))) + 34u];
                        uint _e842 = step;
                        metal::float4 v109_ = right.inner[((_e842 * 5u) + tx) + 10u];
                        metal::float4 _e852 = sum_0_0_;
                        sum_0_0_ = metal::fma(v109_, metal::float4(v108_.x), _e852);
                        metal::float4 _e856 = sum_1_0_;
                        sum_1_0_ = metal::fma(v109_, metal::float4(v108_.y), _e856);
                        metal::float4 _e860 = sum_2_0_;
                        sum_2_0_ = metal::fma(v109_, metal::float4(v108_.z), _e860);
                        metal::float4 _e864 = sum_3_0_;
                        sum_3_0_ = metal::fma(v109_, metal::float4(v108_.w), _e864);
                        uint _e867 = step;
                        uint _e870 = step;
                        metal::float4 v110_ = left.inner[((_e867 * 17u) + (ty ^ ((_e870 >> 3u) & 3u))) + 51u];
                        uint _e882 = step;
                        metal::float4 v111_ = right.inner[((_e882 * 5u) + tx) + 15u];
                        metal::float4 _e892 = sum_0_0_;
                        sum_0_0_ = metal::fma(v111_, metal::float4(v110_.x), _e892);
                        metal::float4 _e896 = sum_1_0_;
                        sum_1_0_ = metal::fma(v111_, metal::float4(v110_.y), _e896);
                        metal::float4 _e900 = sum_2_0_;
                        sum_2_0_ = metal::fma(v111_, metal::float4(v110_.z), _e900);
                        metal::float4 _e904 = sum_3_0_;
                        sum_3_0_ = metal::fma(v111_, metal::float4(v110_.w), _e904);
                        uint _e907 = step;
                        uint _e910 = step;
                        metal::float4 v112_ = left.inner[((_e907 * 17u) + (ty ^ ((_e910 >> 3u) & 3u))) + 68u];
                        uint _e922 = step;
                        metal::float4 v113_ = right.inner[((_e922 * 5u) + tx) + 20u];
                        metal::float4 _e932 = sum_0_0_;
                        sum_0_0_ = metal::fma(v113_, metal::float4(v112_.x), _e932);
                        metal::float4 _e936 = sum_1_0_;
                        sum_1_0_ = metal::fma(v113_, metal::float4(v112_.y), _e936);
                        metal::float4 _e940 = sum_2_0_;
                        sum_2_0_ = metal::fma(v113_, metal::float4(v112_.z), _e940);
                        metal::float4 _e944 = sum_3_0_;
                        sum_3_0_ = metal::fma(v113_, metal::float4(v112_.w), _e944);
                        uint _e947 = step;
                        uint _e950 = step;
                        metal::float4 v114_ = left.inner[((_e947 * 17u) + (ty ^ ((_e950 >> 3u) & 3u))) + 85u];
                        uint _e962 = step;
                        metal::float4 v115_ = right.inner[((_e962 * 5u) + tx) + 25u];
                        metal::float4 _e972 = sum_0_0_;
                        sum_0_0_ = metal::fma(v115_, metal::float4(v114_.x), _e972);
                        metal::float4 _e976 = sum_1_0_;
                        sum_1_0_ = metal::fma(v115_, metal::float4(v114_.y), _e976);
                        metal::float4 _e980 = sum_2_0_;
                        sum_2_0_ = metal::fma(v115_, metal::float4(v114_.z), _e980);
                        metal::float4 _e984 = sum_3_0_;
                        sum_3_0_ = metal::fma(v115_, metal::float4(v114_.w), _e984);
                        uint _e987 = step;
                        uint _e990 = step;
                        metal::float4 v116_ = left.inner[((_e987 * 17u) + (ty ^ ((_e990 >> 3u) & 3u))) + 102u];
                        uint _e1002 = step;
                        metal::float4 v117_ = right.inner[((_e1002 * 5u) + tx) + 30u];
                        metal::float4 _e1012 = sum_0_0_;
                        sum_0_0_ = metal::fma(v117_, metal::float4(v116_.x), _e1012);
                        metal::float4 _e1016 = sum_1_0_;
                        sum_1_0_ = metal::fma(v117_, metal::float4(v116_.y), _e1016);
                        metal::float4 _e1020 = sum_2_0_;
                        sum_2_0_ = metal::fma(v117_, metal::float4(v116_.z), _e1020);
                        metal::float4 _e1024 = sum_3_0_;
                        sum_3_0_ = metal::fma(v117_, metal::float4(v116_.w), _e1024);
                        uint _e1027 = step;
                        uint _e1030 = step;
                        metal::float4 v118_ = left.inner[((_e1027 * 17u) + (ty ^ ((_e1030 >> 3u) & 3u))) + 119u];
                        uint _e1042 = step;
                        metal::float4 v119_ = right.inner[((_e1042 * 5u) + tx) + 35u];
                        metal::float4 _e1052 = sum_0_0_;
                        sum_0_0_ = metal::fma(v119_, metal::float4(v118_.x), _e1052);
                        metal::float4 _e1056 = sum_1_0_;
                        sum_1_0_ = metal::fma(v119_, metal::float4(v118_.y), _e1056);
                        metal::float4 _e1060 = sum_2_0_;
                        sum_2_0_ = metal::fma(v119_, metal::float4(v118_.z), _e1060);
                        metal::float4 _e1064 = sum_3_0_;
                        sum_3_0_ = metal::fma(v119_, metal::float4(v118_.w), _e1064);
                        uint _e1066 = step;
                        uint _e1069 = step;
                        uint v120_ = ((_e1066 * 17u) + (ty ^ (((_e1069 + 8u) >> 3u) & 3u))) + 136u;
                        metal::float4 v121_ = left.inner[v120_];
                        uint _e1084 = step;
                        metal::float4 v122_ = right.inner[((_e1084 * 5u) + tx) + 40u];
                        metal::float4 _e1094 = sum_0_0_;
                        sum_0_0_ = metal::fma(v122_, metal::float4(v121_.x), _e1094);
                        metal::float4 _e1098 = sum_1_0_;
                        sum_1_0_ = metal::fma(v122_, metal::float4(v121_.y), _e1098);
                        metal::float4 _e1102 = sum_2_0_;
                        sum_2_0_ = metal::fma(v122_, metal::float4(v121_.z), _e1102);
                        metal::float4 _e1106 = sum_3_0_;
                        sum_3_0_ = metal::fma(v122_, metal::float4(v121_.w), _e1106);
                        uint _e1108 = step;
                        uint _e1111 = step;
                        uint v123_ = ((_e1108 * 17u) + (ty ^ (((_e1111 + 8u) >> 3u) & 3u))) + 153u;
                        metal::float4 v124_ = left.inner[v123_];
                        uint _e1126 = step;
                        metal::float4 v125_ = right.inner[((_e1126 * 5u) + tx) + 45u];
                        metal::float4 _e1136 = sum_0_0_;
                        sum_0_0_ = metal::fma(v125_, metal::float4(v124_.x), _e1136);
                        metal::float4 _e1140 = sum_1_0_;
                        sum_1_0_ = metal::fma(v125_, metal::float4(v124_.y), _e1140);
                        metal::float4 _e1144 = sum_2_0_;
                        sum_2_0_ = metal::fma(v125_, metal::float4(v124_.z), _e1144);
                        metal::float4 _e1148 = sum_3_0_;
                        sum_3_0_ = metal::fma(v125_, metal::float4(v124_.w), _e1148);
                        uint _e1150 = step;
                        uint _e1153 = step;
                        uint v126_ = ((_e1150 * 17u) + (ty ^ (((_e1153 + 8u) >> 3u) & 3u))) + 170u;
                        metal::float4 v127_ = left.inner[v126_];
                        uint _e1168 = step;
                        metal::float4 v128_ = right.inner[((_e1168 * 5u) + tx) + 50u];
                        metal::float4 _e1178 = sum_0_0_;
                        sum_0_0_ = metal::fma(v128_, metal::float4(v127_.x), _e1178);
                        metal::float4 _e1182 = sum_1_0_;
                        sum_1_0_ = metal::fma(v128_, metal::float4(v127_.y), _e1182);
                        metal::float4 _e1186 = sum_2_0_;
                        sum_2_0_ = metal::fma(v128_, metal::float4(v127_.z), _e1186);
                        metal::float4 _e1190 = sum_3_0_;
                        sum_3_0_ = metal::fma(v128_, metal::float4(v127_.w), _e1190);
                        uint _e1192 = step;
                        uint _e1195 = step;
                        uint v129_ = ((_e1192 * 17u) + (ty ^ (((_e1195 + 8u) >> 3u) & 3u))) + 187u;
                        metal::float4 v130_ = left.inner[v129_];
                        uint _e1210 = step;
                        metal::float4 v131_ = right.inner[((_e1210 * 5u) + tx) + 55u];
                        metal::float4 _e1220 = sum_0_0_;
                        sum_0_0_ = metal::fma(v131_, metal::float4(v130_.x), _e1220);
                        metal::float4 _e1224 = sum_1_0_;
                        sum_1_0_ = metal::fma(v131_, metal::float4(v130_.y), _e1224);
                        metal::float4 _e1228 = sum_2_0_;
                        sum_2_0_ = metal::fma(v131_, metal::float4(v130_.z), _e1228);
                        metal::float4 _e1232 = sum_3_0_;
                        sum_3_0_ = metal::fma(v131_, metal::float4(v130_.w), _e1232);
                        uint _e1234 = step;
                        uint _e1237 = step;
                        uint v132_ = ((_e1234 * 17u) + (ty ^ (((_e1237 + 8u) >> 3u) & 3u))) + 204u;
                        metal::float4 v133_ = left.inner[v132_];
                        uint _e1252 = step;
                        metal::float4 v134_ = right.inner[((_e1252 * 5u) + tx) + 60u];
                        metal::float4 _e1262 = sum_0_0_;
                        sum_0_0_ = metal::fma(v134_, metal::float4(v133_.x), _e1262);
                        metal::float4 _e1266 = sum_1_0_;
                        sum_1_0_ = metal::fma(v134_, metal::float4(v133_.y), _e1266);
                        metal::float4 _e1270 = sum_2_0_;
                        sum_2_0_ = metal::fma(v134_, metal::float4(v133_.z), _e1270);
                        metal::float4 _e1274 = sum_3_0_;
                        sum_3_0_ = metal::fma(v134_, metal::float4(v133_.w), _e1274);
                        uint _e1276 = step;
                        uint _e1279 = step;
                        uint v135_ = ((_e1276 * 17u) + (ty ^ (((_e1279 + 8u) >> 3u) & 3u))) + 221u;
                        metal::float4 v136_ = left.inner[v135_];
                        uint _e1294 = step;
                        metal::float4 v137_ = right.inner[((_e1294 * 5u) + tx) + 65u];
                        metal::float4 _e1304 = sum_0_0_;
                        sum_0_0_ = metal::fma(v137_, metal::float4(v136_.x), _e1304);
                        metal::float4 _e1308 = sum_1_0_;
                        sum_1_0_ = metal::fma(v137_, metal::float4(v136_.y), _e1308);
                        metal::float4 _e1312 = sum_2_0_;
                        sum_2_0_ = metal::fma(v137_, metal::float4(v136_.z), _e1312);
                        metal::float4 _e1316 = sum_3_0_;
                        sum_3_0_ = metal::fma(v137_, metal::float4(v136_.w), _e1316);
                        uint _e1318 = step;
                        uint _e1321 = step;
                        uint v138_ = ((_e1318 * 17u) + (ty ^ (((_e1321 + 8u) >> 3u) & 3u))) + 238u;
                        metal::float4 v139_ = left.inner[v138_];
                        uint _e1336 = step;
                        metal::float4 v140_ = right.inner[((_e1336 * 5u) + tx) + 70u];
                        metal::float4 _e1346 = sum_0_0_;
                        sum_0_0_ = metal::fma(v140_, metal::float4(v139_.x), _e1346);
                        metal::float4 _e1350 = sum_1_0_;
                        sum_1_0_ = metal::fma(v140_, metal::float4(v139_.y), _e1350);
                        metal::float4 _e1354 = sum_2_0_;
                        sum_2_0_ = metal::fma(v140_, metal::float4(v139_.z), _e1354);
                        metal::float4 _e1358 = sum_3_0_;
                        sum_3_0_ = metal::fma(v140_, metal::float4(v139_.w), _e1358);
                        uint _e1360 = step;
                        uint _e1363 = step;
                        uint v141_ = ((_e1360 * 17u) + (ty ^ (((_e1363 + 8u) >> 3u) & 3u))) + 255u;
                        metal::float4 v142_ = left.inner[v141_];
                        uint _e1378 = step;
                        metal::float4 v143_ = right.inner[((_e1378 * 5u) + tx) + 75u];
                        metal::float4 _e1388 = sum_0_0_;
                        sum_0_0_ = metal::fma(v143_, metal::float4(v142_.x), _e1388);
                        metal::float4 _e1392 = sum_1_0_;
                        sum_1_0_ = metal::fma(v143_, metal::float4(v142_.y), _e1392);
                        metal::float4 _e1396 = sum_2_0_;
                        sum_2_0_ = metal::fma(v143_, metal::float4(v142_.z), _e1396);
                        metal::float4 _e1400 = sum_3_0_;
                        sum_3_0_ = metal::fma(v143_, metal::float4(v142_.w), _e1400);
                    }
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint v144_ = (tile_m * 64u) + (ty * 4u);
        uint v145_ = (tile_n * 16u) + (tx * 4u);
        uint v146_ = v145_ + 1u;
        uint v147_ = v145_ + 2u;
        uint v148_ = v145_ + 3u;
        uint _e1426 = params.m;
        if (v144_ < _e1426) {
            metal::float4 v149_ = sum_0_0_;
            uint _e1431 = params.n;
            if (v145_ < _e1431) {
                y0_[v145_] = v149_.x;
            }
            uint _e1438 = params.n;
            if (v146_ < _e1438) {
                y0_[v146_] = v149_.y;
            }
            uint _e1445 = params.n;
            if (v147_ < _e1445) {
                y0_[v147_] = v149_.z;
            }
            uint _e1452 = params.n;
            if (v148_ < _e1452) {
                y0_[v148_] = v149_.w;
            }
        }
        uint _e1461 = params.m;
        if ((v144_ + 1u) < _e1461) {
            metal::float4 v150_ = sum_1_0_;
            uint _e1466 = params.n;
            if (v145_ < _e1466) {
                y0_[v145_] = v150_.x;
            }
            uint _e1473 = params.n;
            if (v146_ < _e1473) {
                y0_[v146_] = v150_.y;
            }
            uint _e1480 = params.n;
            if (v147_ < _e1480) {
                y0_[v147_] = v150_.z;
            }
            uint _e1487 = params.n;
            if (v148_ < _e1487) {
                y0_[v148_] = v150_.w;
            }
        }
        uint _e1496 = params.m;
        if ((v144_ + 2u) < _e1496) {
            metal::float4 v151_ = sum_2_0_;
            uint _e1501 = params.n;
            if (v145_ < _e1501) {
                y0_[v145_] = v151_.x;
            }
            uint _e1508 = params.n;
            if (v146_ < _e1508) {
                y0_[v146_] = v151_.y;
            }
            uint _e1515 = params.n;
            if (v147_ < _e1515) {
                y0_[v147_] = v151_.z;
            }
            uint _e1522 = params.n;
            if (v148_ < _e1522) {
                y0_[v148_] = v151_.w;
            }
        }
        uint _e1531 = params.m;
        if ((v144_ + 3u) < _e1531) {
            metal::float4 v152_ = sum_3_0_;
            uint _e1536 = params.n;
            if (v145_ < _e1536) {
                y0_[v145_] = v152_.x;
            }
            uint _e1543 = params.n;
            if (v146_ < _e1543) {
                y0_[v146_] = v152_.y;
            }
            uint _e1550 = params.n;
            if (v147_ < _e1550) {
                y0_[v147_] = v152_.z;
            }
            uint _e1557 = params.n;
            if (v148_ < _e1557) {
                y0_[v148_] = v152_.w;
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
