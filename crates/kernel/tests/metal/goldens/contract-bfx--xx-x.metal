// contract bf16x2/3 32x32x32/16x16 a1 b1
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
, threadgroup type_3& left_1_
, threadgroup type_3& right_0_
, threadgroup type_3& right_1_
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::float4 sum_0_0_ = metal::float4(0.0);
    metal::float4 sum_1_0_ = metal::float4(0.0);
    metal::float4 left_0_2_ = metal::float4(0.0);
    metal::float4 left_1_2_ = metal::float4(0.0);
    metal::float4 right_0_2_ = metal::float4(0.0);
    metal::float4 right_1_2_ = metal::float4(0.0);
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
        float v6_ = x0_[0];
        float v7_ = x0_[0];
        float v8_ = x0_[0];
        float v9_ = x0_[0];
        uint _e89 = params.k;
        uint _e97 = params.k;
        uint _e105 = params.k;
        uint _e113 = params.k;
        left_0_2_ = metal::float4((v1_ < _e89) ? v6_ : 0.0, ((v1_ + 1u) < _e97) ? v7_ : 0.0, ((v1_ + 2u) < _e105) ? v8_ : 0.0, ((v1_ + 3u) < _e113) ? v9_ : 0.0);
        float v10_ = x0_[0];
        float v11_ = x0_[0];
        float v12_ = x0_[0];
        float v13_ = x0_[0];
        uint _e132 = params.k;
        uint _e140 = params.k;
        uint _e148 = params.k;
        uint _e156 = params.k;
        left_1_2_ = metal::float4((v1_ < _e132) ? v10_ : 0.0, ((v1_ + 1u) < _e140) ? v11_ : 0.0, ((v1_ + 2u) < _e148) ? v12_ : 0.0, ((v1_ + 3u) < _e156) ? v13_ : 0.0);
        float v14_ = x1_[0];
        float v15_ = x1_[0];
        float v16_ = x1_[0];
        float v17_ = x1_[0];
        uint _e175 = params.k;
        uint _e183 = params.k;
        uint _e191 = params.k;
        uint _e199 = params.k;
        right_0_2_ = metal::float4((v4_ < _e175) ? v14_ : 0.0, ((v4_ + 1u) < _e183) ? v15_ : 0.0, ((v4_ + 2u) < _e191) ? v16_ : 0.0, ((v4_ + 3u) < _e199) ? v17_ : 0.0);
        float v18_ = x1_[0];
        float v19_ = x1_[0];
        float v20_ = x1_[0];
        float v21_ = x1_[0];
        uint _e218 = params.k;
        uint _e226 = params.k;
        uint _e234 = params.k;
        uint _e242 = params.k;
        right_1_2_ = metal::float4((v4_ < _e218) ? v18_ : 0.0, ((v4_ + 1u) < _e226) ? v19_ : 0.0, ((v4_ + 2u) < _e234) ? v20_ : 0.0, ((v4_ + 3u) < _e242) ? v21_ : 0.0);
        metal::float4 v22_ = left_0_2_;
        uint v23_ = (v0_ * 10u) + (v1_ >> 2u);
        metal::float4 v24_ = as_type<metal::float4>((as_type<metal::uint4>(v22_) + metal::uint4(32768u)) & metal::uint4(4294901760u));
        metal::float4 v25_ = as_type<metal::float4>(as_type<metal::uint4>(v22_ - v24_) & metal::uint4(4294901760u));
        left_0_.inner[v23_ * 4u] = v24_.x;
        left_0_.inner[(v23_ * 4u) + 1u] = v24_.y;
        left_0_.inner[(v23_ * 4u) + 2u] = v24_.z;
        left_0_.inner[(v23_ * 4u) + 3u] = v24_.w;
        left_1_.inner[v23_ * 4u] = v25_.x;
        left_1_.inner[(v23_ * 4u) + 1u] = v25_.y;
        left_1_.inner[(v23_ * 4u) + 2u] = v25_.z;
        left_1_.inner[(v23_ * 4u) + 3u] = v25_.w;
        metal::float4 v26_ = left_1_2_;
        uint v27_ = (v2_ * 10u) + (v1_ >> 2u);
        metal::float4 v28_ = as_type<metal::float4>((as_type<metal::uint4>(v26_) + metal::uint4(32768u)) & metal::uint4(4294901760u));
        metal::float4 v29_ = as_type<metal::float4>(as_type<metal::uint4>(v26_ - v28_) & metal::uint4(4294901760u));
        left_0_.inner[v27_ * 4u] = v28_.x;
        left_0_.inner[(v27_ * 4u) + 1u] = v28_.y;
        left_0_.inner[(v27_ * 4u) + 2u] = v28_.z;
        left_0_.inner[(v27_ * 4u) + 3u] = v28_.w;
        left_1_.inner[v27_ * 4u] = v29_.x;
        left_1_.inner[(v27_ * 4u) + 1u] = v29_.y;
        left_1_.inner[(v27_ * 4u) + 2u] = v29_.z;
        left_1_.inner[(v27_ * 4u) + 3u] = v29_.w;
        metal::float4 v30_ = right_0_2_;
        uint v31_ = (v3_ * 10u) + (v4_ >> 2u);
        metal::float4 v32_ = as_type<metal::float4>((as_type<metal::uint4>(v30_) + metal::uint4(32768u)) & metal::uint4(4294901760u));
        metal::float4 v33_ = as_type<metal::float4>(as_type<metal::uint4>(v30_ - v32_) & metal::uint4(4294901760u));
        right_0_.inner[v31_ * 4u] = v32_.x;
        right_0_.inner[(v31_ * 4u) + 1u] = v32_.y;
        right_0_.inner[(v31_ * 4u) + 2u] = v32_.z;
        right_0_.inner[(v31_ * 4u) + 3u] = v32_.w;
        right_1_.inner[v31_ * 4u] = v33_.x;
        right_1_.inner[(v31_ * 4u) + 1u] = v33_.y;
        right_1_.inner[(v31_ * 4u) + 2u] = v33_.z;
        right_1_.inner[(v31_ * 4u) + 3u] = v33_.w;
        metal::float4 v34_ = right_1_2_;
        uint v35_ = (v5_ * 10u) + (v4_ >> 2u);
        metal::float4 v36_ = as_type<metal::float4>((as_type<metal::uint4>(v34_) + metal::uint4(32768u)) & metal::uint4(4294901760u));
        metal::float4 v37_ = as_type<metal::float4>(as_type<metal::uint4>(v34_ - v36_) & metal::uint4(4294901760u));
        right_0_.inner[v35_ * 4u] = v36_.x;
        right_0_.inner[(v35_ * 4u) + 1u] = v36_.y;
        right_0_.inner[(v35_ * 4u) + 2u] = v36_.z;
        right_0_.inner[(v35_ * 4u) + 3u] = v36_.w;
        right_1_.inner[v35_ * 4u] = v37_.x;
        right_1_.inner[(v35_ * 4u) + 1u] = v37_.y;
        right_1_.inner[(v35_ * 4u) + 2u] = v37_.z;
        right_1_.inner[(v35_ * 4u) + 3u] = v37_.w;
        float v38_ = x0_[0];
        float v39_ = x0_[0];
        float v40_ = x0_[0];
        float v41_ = x0_[0];
        uint _e551 = params.k;
        uint _e561 = params.k;
        uint _e571 = params.k;
        uint _e581 = params.k;
        left_0_2_ = metal::float4(((32u + v1_) < _e551) ? v38_ : 0.0, ((32u + (v1_ + 1u)) < _e561) ? v39_ : 0.0, ((32u + (v1_ + 2u)) < _e571) ? v40_ : 0.0, ((32u + (v1_ + 3u)) < _e581) ? v41_ : 0.0);
        float v42_ = x0_[0];
        float v43_ = x0_[0];
        float v44_ = x0_[0];
        float v45_ = x0_[0];
        uint _e602 = params.k;
        uint _e612 = params.k;
        uint _e622 = params.k;
        uint _e632 = params.k;
        left_1_2_ = metal::float4(((32u + v1_) < _e602) ? v42_ : 0.0, ((32u + (v1_ + 1u)) < _e612) ? v43_ : 0.0, ((32u + (v1_ + 2u)) < _e622) ? v44_ : 0.0, ((32u + (v1_ + 3u)) < _e632) ? v45_ : 0.0);
        float v46_ = x1_[0];
        float v47_ = x1_[0];
        float v48_ = x1_[0];
        float v49_ = x1_[0];
        uint _e653 = params.k;
        uint _e663 = params.k;
        uint _e673 = params.k;
        uint _e683 = params.k;
        right_0_2_ = metal::float4(((32u + v4_) < _e653) ? v46_ : 0.0, ((32u + (v4_ + 1u)) < _e663) ? v47_ : 0.0, ((32u + (v4_ + 2u)) < _e673) ? v48_ : 0.0, ((32u + (v4_ + 3u)) < _e683) ? v49_ : 0.0);
        float v50_ = x1_[0];
        float v51_ = x1_[0];
        float v52_ = x1_[0];
        float v53_ = x1_[0];
        uint _e704 = params.k;
        uint _e714 = params.k;
        uint _e724 = params.k;
        uint _e734 = params.k;
        right_1_2_ = metal::float4(((32u + v4_) < _e704) ? v50_ : 0.0, ((32u + (v4_ + 1u)) < _e714) ? v51_ : 0.0, ((32u + (v4_ + 2u)) < _e724) ? v52_ : 0.0, ((32u + (v4_ + 3u)) < _e734) ? v53_ : 0.0);
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e1374 = from_2_;
                from_2_ = _e1374 + 32u;
            }
            loop_init = false;
            uint _e740 = from_2_;
            uint _e743 = params.k;
            if (_e740 < _e743) {
            } else {
                break;
            }
            {
                step = 0u;
                bool loop_init_1 = true;
                while(true) {
                    if (!loop_init_1) {
                        uint _e892 = step;
                        step = _e892 + 1u;
                    }
                    loop_init_1 = false;
                    uint _e747 = step;
                    if (_e747 < 32u) {
                    } else {
                        break;
                    }
                    {
                        uint _e756 = step;
                        float v54_ = left_0_.inner[((subgroup_row + (lane >> 2u)) * 40u) + _e756];
                        uint _e768 = step;
                        float v55_ = left_0_.inner[(((subgroup_row + 8u) + (lane >> 2u)) * 40u) + _e768];
                        uint _e778 = step;
                        float v56_ = left_1_.inner[((subgroup_row + (lane >> 2u)) * 40u) + _e778];
                        uint _e790 = step;
                        float v57_ = left_1_.inner[(((subgroup_row + 8u) + (lane >> 2u)) * 40u) + _e790];
                        uint v58_ = subgroup_column + ((lane & 3u) * 4u);
                        uint _e802 = step;
                        float v59_ = right_0_.inner[(v58_ * 40u) + _e802];
                        uint _e811 = step;
                        float v60_ = right_0_.inner[((v58_ + 1u) * 40u) + _e811];
                        uint _e820 = step;
                        float v61_ = right_0_.inner[((v58_ + 2u) * 40u) + _e820];
                        uint _e829 = step;
                        float v62_ = right_0_.inner[((v58_ + 3u) * 40u) + _e829];
                        metal::float4 v63_ = metal::float4(v59_, v60_, v61_, v62_);
                        uint v64_ = subgroup_column + ((lane & 3u) * 4u);
                        uint _e842 = step;
                        float v65_ = right_1_.inner[(v64_ * 40u) + _e842];
                        uint _e851 = step;
                        float v66_ = right_1_.inner[((v64_ + 1u) * 40u) + _e851];
                        uint _e860 = step;
                        float v67_ = right_1_.inner[((v64_ + 2u) * 40u) + _e860];
                        uint _e869 = step;
                        float v68_ = right_1_.inner[((v64_ + 3u) * 40u) + _e869];
                        metal::float4 v69_ = metal::float4(v65_, v66_, v67_, v68_);
                        metal::float4 _e875 = sum_0_0_;
                        sum_0_0_ = metal::fma(v69_, metal::float4(v54_), _e875);
                        metal::float4 _e878 = sum_1_0_;
                        sum_1_0_ = metal::fma(v69_, metal::float4(v55_), _e878);
                        metal::float4 _e881 = sum_0_0_;
                        sum_0_0_ = metal::fma(v63_, metal::float4(v56_), _e881);
                        metal::float4 _e884 = sum_1_0_;
                        sum_1_0_ = metal::fma(v63_, metal::float4(v57_), _e884);
                        metal::float4 _e887 = sum_0_0_;
                        sum_0_0_ = metal::fma(v63_, metal::float4(v54_), _e887);
                        metal::float4 _e890 = sum_1_0_;
                        sum_1_0_ = metal::fma(v63_, metal::float4(v55_), _e890);
                    }
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                metal::float4 v70_ = left_0_2_;
                uint v71_ = (v0_ * 10u) + (v1_ >> 2u);
                metal::float4 v72_ = as_type<metal::float4>((as_type<metal::uint4>(v70_) + metal::uint4(32768u)) & metal::uint4(4294901760u));
                metal::float4 v73_ = as_type<metal::float4>(as_type<metal::uint4>(v70_ - v72_) & metal::uint4(4294901760u));
                left_0_.inner[v71_ * 4u] = v72_.x;
                left_0_.inner[(v71_ * 4u) + 1u] = v72_.y;
                left_0_.inner[(v71_ * 4u) + 2u] = v72_.z;
                left_0_.inner[(v71_ * 4u) + 3u] = v72_.w;
                left_1_.inner[v71_ * 4u] = v73_.x;
                left_1_.inner[(v71_ * 4u) + 1u] = v73_.y;
                left_1_.inner[(v71_ * 4u) + 2u] = v73_.z;
                left_1_.inner[(v71_ * 4u) + 3u] = v73_.w;
                metal::float4 v74_ = left_1_2_;
                uint v75_ = (v2_ * 10u) + (v1_ >> 2u);
                metal::float4 v76_ = as_type<metal::float4>((as_type<metal::uint4>(v74_) + metal::uint4(32768u)) & metal::uint4(4294901760u));
                metal::float4 v77_ = as_type<metal::float4>(as_type<metal::uint4>(v74_ - v76_) & metal::uint4(4294901760u));
                left_0_.inner[v75_ * 4u] = v76_.x;
                left_0_.inner[(v75_ * 4u) + 1u] = v76_.y;
                left_0_.inner[(v75_ * 4u) + 2u] = v76_.z;
                left_0_.inner[(v75_ * 4u) + 3u] = v76_.w;
                left_1_.inner[v75_ * 4u] = v77_.x;
                left_1_.inner[(v75_ * 4u) + 1u] = v77_.y;
                left_1_.inner[(v75_ * 4u) + 2u] = v77_.z;
                left_1_.inner[(v75_ * 4u) + 3u] = v77_.w;
                metal::float4 v78_ = right_0_2_;
                uint v79_ = (v3_ * 10u) + (v4_ >> 2u);
                metal::float4 v80_ = as_type<metal::float4>((as_type<metal::uint4>(v78_) + metal::uint4(32768u)) & metal::uint4(4294901760u));
                metal::float4 v81_ = as_type<metal::float4>(as_type<metal::uint4>(v78_ - v80_) & metal::uint4(4294901760u));
                right_0_.inner[v79_ * 4u] = v80_.x;
                right_0_.inner[(v79_ * 4u) + 1u] = v80_.y;
                right_0_.inner[(v79_ * 4u) + 2u] = v80_.z;
                right_0_.inner[(v79_ * 4u) + 3u] = v80_.w;
                right_1_.inner[v79_ * 4u] = v81_.x;
                right_1_.inner[(v79_ * 4u) + 1u] = v81_.y;
                right_1_.inner[(v79_ * 4u) + 2u] = v81_.z;
                right_1_.inner[(v79_ * 4u) + 3u] = v81_.w;
                metal::float4 v82_ = right_1_2_;
                uint v83_ = (v5_ * 10u) + (v4_ >> 2u);
                metal::float4 v84_ = as_type<metal::float4>((as_type<metal::uint4>(v82_) + metal::uint4(32768u)) & metal::uint4(4294901760u));
                metal::float4 v85_ = as_type<metal::float4>(as_type<metal::uint4>(v82_ - v84_) & metal::uint4(4294901760u));
                right_0_.inner[v83_ * 4u] = v84_.x;
                right_0_.inner[(v83_ * 4u) + 1u] = v84_.y;
                right_0_.inner[(v83_ * 4u) + 2u] = v84_.z;
                right_0_.inner[(v83_ * 4u) + 3u] = v84_.w;
                right_1_.inner[v83_ * 4u] = v85_.x;
                right_1_.inner[(v83_ * 4u) + 1u] = v85_.y;
                right_1_.inner[(v83_ * 4u) + 2u] = v85_.z;
                right_1_.inner[(v83_ * 4u) + 3u] = v85_.w;
                uint _e1183 = from_2_;
                uint v86_ = _e1183 + 64u;
                float v87_ = x0_[0];
                float v88_ = x0_[0];
                float v89_ = x0_[0];
                float v90_ = x0_[0];
                uint _e1202 = params.k;
                uint _e1211 = params.k;
                uint _e1220 = params.k;
                uint _e1229 = params.k;
                left_0_2_ = metal::float4(((v86_ + v1_) < _e1202) ? v87_ : 0.0, ((v86_ + (v1_ + 1u)) < _e1211) ? v88_ : 0.0, ((v86_ + (v1_ + 2u)) < _e1220) ? v89_ : 0.0, ((v86_ + (v1_ + 3u)) < _e1229) ? v90_ : 0.0);
                float v91_ = x0_[0];
                float v92_ = x0_[0];
                float v93_ = x0_[0];
                float v94_ = x0_[0];
                uint _e1249 = params.k;
                uint _e1258 = params.k;
                uint _e1267 = params.k;
                uint _e1276 = params.k;
                left_1_2_ = metal::float4(((v86_ + v1_) < _e1249) ? v91_ : 0.0, ((v86_ + (v1_ + 1u)) < _e1258) ? v92_ : 0.0, ((v86_ + (v1_ + 2u)) < _e1267) ? v93_ : 0.0, ((v86_ + (v1_ + 3u)) < _e1276) ? v94_ : 0.0);
                float v95_ = x1_[0];
                float v96_ = x1_[0];
                float v97_ = x1_[0];
                float v98_ = x1_[0];
                uint _e1296 = params.k;
                uint _e1305 = params.k;
                uint _e1314 = params.k;
                uint _e1323 = params.k;
                right_0_2_ = metal::float4(((v86_ + v4_) < _e1296) ? v95_ : 0.0, ((v86_ + (v4_ + 1u)) < _e1305) ? v96_ : 0.0, ((v86_ + (v4_ + 2u)) < _e1314) ? v97_ : 0.0, ((v86_ + (v4_ + 3u)) < _e1323) ? v98_ : 0.0);
                float v99_ = x1_[0];
                float v100_ = x1_[0];
                float v101_ = x1_[0];
                float v102_ = x1_[0];
                uint _e1343 = params.k;
                uint _e1352 = params.k;
                uint _e1361 = params.k;
                uint _e1370 = params.k;
                right_1_2_ = metal::float4(((v86_ + v4_) < _e1343) ? v99_ : 0.0, ((v86_ + (v4_ + 1u)) < _e1352) ? v100_ : 0.0, ((v86_ + (v4_ + 2u)) < _e1361) ? v101_ : 0.0, ((v86_ + (v4_ + 3u)) < _e1370) ? v102_ : 0.0);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint v103_ = (tile_n * 32u) + (subgroup_column + ((lane & 3u) * 4u));
        uint v104_ = v103_ + 1u;
        uint v105_ = v103_ + 2u;
        uint v106_ = v103_ + 3u;
        uint _e1399 = params.m;
        if (((tile_m * 32u) + (subgroup_row + (lane >> 2u))) < _e1399) {
            metal::float4 v107_ = sum_0_0_;
            uint _e1404 = params.n;
            if (v103_ < _e1404) {
                y0_[0] = v107_.x;
            }
            uint _e1411 = params.n;
            if (v104_ < _e1411) {
                y0_[0] = v107_.y;
            }
            uint _e1418 = params.n;
            if (v105_ < _e1418) {
                y0_[0] = v107_.z;
            }
            uint _e1425 = params.n;
            if (v106_ < _e1425) {
                y0_[0] = v107_.w;
            }
        }
        uint _e1440 = params.m;
        if (((tile_m * 32u) + ((subgroup_row + 8u) + (lane >> 2u))) < _e1440) {
            metal::float4 v108_ = sum_1_0_;
            uint _e1445 = params.n;
            if (v103_ < _e1445) {
                y0_[0] = v108_.x;
            }
            uint _e1452 = params.n;
            if (v104_ < _e1452) {
                y0_[0] = v108_.y;
            }
            uint _e1459 = params.n;
            if (v105_ < _e1459) {
                y0_[0] = v108_.z;
            }
            uint _e1466 = params.n;
            if (v106_ < _e1466) {
                y0_[0] = v108_.w;
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
