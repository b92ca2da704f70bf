// contract 64x64x16/8x4/s2 a1 b1
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
struct type_4 {
    metal::float4 inner[544];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(3)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2 const& x1_ [[buffer(1)]]
, device type_2& y0_ [[buffer(2)]]
, threadgroup type_4& left
, threadgroup type_4& right
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::float4 sum_0_0_ = metal::float4(0.0);
    metal::float4 sum_1_0_ = metal::float4(0.0);
    metal::float4 sum_2_0_ = metal::float4(0.0);
    metal::float4 sum_3_0_ = metal::float4(0.0);
    metal::float4 sum_4_0_ = metal::float4(0.0);
    metal::float4 sum_5_0_ = metal::float4(0.0);
    metal::float4 sum_6_0_ = metal::float4(0.0);
    metal::float4 sum_7_0_ = metal::float4(0.0);
    metal::float4 left_0_ = metal::float4(0.0);
    metal::float4 right_0_ = metal::float4(0.0);
    uint current = 0u;
    uint from_2_ = 0u;
    metal::float4 sum_0_0_2_ = metal::float4(0.0);
    metal::float4 sum_1_0_2_ = metal::float4(0.0);
    metal::float4 sum_2_0_2_ = metal::float4(0.0);
    metal::float4 sum_3_0_2_ = metal::float4(0.0);
    uint id = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.total;
    if (id < _e10) {
        uint _e14 = params.tiles_n;
        uint tile_n = id % _e14;
        uint _e18 = params.tiles_n;
        uint _e22 = params.tiles_m;
        uint tile_m = (id / _e18) % _e22;
        uint v0_ = local_index & 127u;
        uint row = local_index >> 7u;
        uint v1_ = v0_ >> 5u;
        uint v2_ = v0_ & 31u;
        uint ty = ((v1_ >> 1u) * 4u) + ((v2_ >> 1u) & 3u);
        uint tx = ((v1_ & 1u) * 8u) + ((v2_ & 1u) + ((v2_ >> 3u) * 2u));
        uint v3_ = local_index & 15u;
        uint v4_ = local_index >> 4u;
        uint v5_ = local_index & 15u;
        uint v6_ = local_index >> 4u;
        float v7_ = x1_[0];
        float v8_ = x1_[0];
        float v9_ = x1_[0];
        float v10_ = x1_[0];
        uint _e108 = params.k;
        left_0_ = metal::select(metal::float4(0.0), metal::float4(v7_, v8_, v9_, v10_), metal::bool4(v4_ < _e108));
        float v11_ = x0_[0];
        float v12_ = x0_[0];
        float v13_ = x0_[0];
        float v14_ = x0_[0];
        uint _e129 = params.k;
        right_0_ = metal::select(metal::float4(0.0), metal::float4(v11_, v12_, v13_, v14_), metal::bool4(v6_ < _e129));
        metal::float4 _e140 = left_0_;
        left.inner[(v4_ * 17u) + v3_] = _e140;
        metal::float4 _e146 = right_0_;
        right.inner[(v6_ * 17u) + v5_] = _e146;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e641 = from_2_;
                from_2_ = _e641 + 16u;
            }
            loop_init = false;
            uint _e149 = from_2_;
            uint _e152 = params.k;
            if (_e149 < _e152) {
            } else {
                break;
            }
            {
                uint _e154 = from_2_;
                uint v15_ = _e154 + 16u;
                float v16_ = x1_[0];
                float v17_ = x1_[0];
                float v18_ = x1_[0];
                float v19_ = x1_[0];
                uint _e175 = params.k;
                left_0_ = metal::select(metal::float4(0.0), metal::float4(v16_, v17_, v18_, v19_), metal::bool4((v15_ + v4_) < _e175));
                float v20_ = x0_[0];
                float v21_ = x0_[0];
                float v22_ = x0_[0];
                float v23_ = x0_[0];
                uint _e197 = params.k;
                right_0_ = metal::select(metal::float4(0.0), metal::float4(v20_, v21_, v22_, v23_), metal::bool4((v15_ + v6_) < _e197));
                uint base = current;
                uint v24_ = base + (row * 8u);
                uint v25_ = (v24_ * 17u) + ty;
                metal::float4 v26_ = left.inner[v25_];
                metal::float4 v27_ = left.inner[v25_ + 8u];
                metal::float4 v28_ = right.inner[(v24_ * 17u) + tx];
                metal::float4 _e224 = sum_0_0_;
                sum_0_0_ = metal::fma(v28_, metal::float4(v26_.x), _e224);
                metal::float4 _e228 = sum_1_0_;
                sum_1_0_ = metal::fma(v28_, metal::float4(v26_.y), _e228);
                metal::float4 _e232 = sum_2_0_;
                sum_2_0_ = metal::fma(v28_, metal::float4(v26_.z), _e232);
                metal::float4 _e236 = sum_3_0_;
                sum_3_0_ = metal::fma(v28_, metal::float4(v26_.w), _e236);
                metal::float4 _e240 = sum_4_0_;
                sum_4_0_ = metal::fma(v28_, metal::float4(v27_.x), _e240);
                metal::float4 _e244 = sum_5_0_;
                sum_5_0_ = metal::fma(v28_, metal::float4(v27_.y), _e244);
                metal::float4 _e248 = sum_6_0_;
                sum_6_0_ = metal::fma(v28_, metal::float4(v27_.z), _e248);
                metal::float4 _e252 = sum_7_0_;
                sum_7_0_ = metal::fma(v28_, metal::float4(v27_.w), _e252);
                uint v29_ = (v24_ * 17u) + ty;
                metal::float4 v30_ = left.inner[v29_ + 17u];
                metal::float4 v31_ = left.inner[v29_ + 25u];
                metal::float4 v32_ = right.inner[((v24_ * 17u) + tx) + 17u];
                metal::float4 _e277 = sum_0_0_;
                sum_0_0_ = metal::fma(v32_, metal::float4(v30_.x), _e277);
                metal::float4 _e281 = sum_1_0_;
                sum_1_0_ = metal::fma(v32_, metal::float4(v30_.y), _e281);
                metal::float4 _e285 = sum_2_0_;
                sum_2_0_ = metal::fma(v32_, metal::float4(v30_.z), _e285);
                metal::float4 _e289 = sum_3_0_;
                sum_3_0_ = metal::fma(v32_, metal::float4(v30_.w), _e289);
                metal::float4 _e293 = sum_4_0_;
                sum_4_0_ = metal::fma(v32_, metal::float4(v31_.x), _e293);
                metal::float4 _e297 = sum_5_0_;
                sum_5_0_ = metal::fma(v32_, metal::float4(v31_.y), _e297);
                metal::float4 _e301 = sum_6_0_;
                sum_6_0_ = metal::fma(v32_, metal::float4(v31_.z), _e301);
                metal::float4 _e305 = sum_7_0_;
                sum_7_0_ = metal::fma(v32_, metal::float4(v31_.w), _e305);
                uint v33_ = (v24_ * 17u) + ty;
                metal::float4 v34_ = left.inner[v33_ + 34u];
                metal::float4 v35_ = left.inner[v33_ + 42u];
                metal::float4 v36_ = right.inner[((v24_ * 17u) + tx) + 34u];
                metal::float4 _e330 = sum_0_0_;
                sum_0_0_ = metal::fma(v36_, metal::float4(v34_.x), _e330);
                metal::float4 _e334 = sum_1_0_;
                sum_1_0_ = metal::fma(v36_, metal::float4(v34_.y), _e334);
                metal::float4 _e338 = sum_2_0_;
                sum_2_0_ = metal::fma(v36_, metal::float4(v34_.z), _e338);
                metal::float4 _e342 = sum_3_0_;
                sum_3_0_ = metal::fma(v36_, metal::float4(v34_.w), _e342);
                metal::float4 _e346 = sum_4_0_;
                sum_4_0_ = metal::fma(v36_, metal::float4(v35_.x), _e346);
                metal::float4 _e350 = sum_5_0_;
                sum_5_0_ = metal::fma(v36_, metal::float4(v35_.y), _e350);
                metal::float4 _e354 = sum_6_0_;
                sum_6_0_ = metal::fma(v36_, metal::float4(v35_.z), _e354);
                metal::float4 _e358 = sum_7_0_;
                sum_7_0_ = metal::fma(v36_, metal::float4(v35_.w), _e358);
                uint v37_ = (v24_ * 17u) + ty;
                metal::float4 v38_ = left.inner[v37_ + 51u];
                metal::float4 v39_ = left.inner[v37_ + 59u];
                metal::float4 v40_ = right.inner[((v24_ * 17u) + tx) + 51u];
                metal::float4 _e383 = sum_0_0_;
                sum_0_0_ = metal::fma(v40_, metal::float4(v38_.x), _e383);
                metal::float4 _e387 = sum_1_0_;
                sum_1_0_ = metal::fma(v40_, metal::float4(v38_.y), _e387);
                metal::float4 _e391 = sum_2_0_;
                sum_2_0_ = metal::fma(v40_, metal::float4(v38_.z), _e391);
                metal::float4 _e395 = sum_3_0_;
                sum_3_0_ = metal::fma(v40_, metal::float4(v38_.w), _e395);
                metal::float4 _e399 = sum_4_0_;
                sum_4_0_ = metal::fma(v40_, metal::float4(v39_.x), _e399);
                metal::float4 _e403 = sum_5_0_;
                sum_5_0_ = metal::fma(v40_, metal::float4(v39_.y), _e403);
                metal::float4 _e407 = sum_6_0_;
                sum_6_0_ = metal::fma(v40_, metal::float4(v39_.z), _e407);
                metal::float4 _e411 = sum_7_0_;
                sum_7_0_ = metal::fma(v40_, metal::float4(v39_.w), _e411);
                uint v41_ = (v24_ * 17u) + ty;
                metal::float4 v42_ = left.inner[v41_ + 68u];
                metal::float4 v43_ = left.inner[v41_ + 76u];
                metal::float4 v44_ = right.inner[((v24_ * 17u) + tx) + 68u];
                metal::float4 _e436 = sum_0_0_;
                sum_0_0_ = metal::fma(v44_, metal::float4(v42_.x), _e436);
                metal::float4 _e440 = sum_1_0_;
                sum_1_0_ = metal::fma(v44_, metal::float4(v42_.y), _e440);
                metal::float4 _e444 = sum_2_0_;
                sum_2_0_ = metal::fma(v44_, metal::float4(v42_.z), _e444);
                metal::float4 _e448 = sum_3_0_;
                sum_3_0_ = metal::fma(v44_, metal::float4(v42_.w), _e448);
                metal::float4 _e452 = sum_4_0_;
                sum_4_0_ = metal::fma(v44_, metal::float4(v43_.x), _e452);
                metal::float4 _e456 = sum_5_0_;
                sum_5_0_ = metal::fma(v44_, metal::float4(v43_.y), _e456);
                metal::float4 _e460 = sum_6_0_;
                sum_6_0_ = metal::fma(v44_, metal::float4(v43_.z), _e460);
                metal::float4 _e464 = sum_7_0_;
                sum_7_0_ = metal::fma(v44_, metal::float4(v43_.w), _e464);
                uint v45_ = (v24_ * 17u) + ty;
                metal::float4 v46_ = left.inner[v45_ + 85u];
                metal::float4 v47_ = left.inner[v45_ + 93u];
                metal::float4 v48_ = right.inner[((v24_ * 17u) + tx) + 85u];
                metal::float4 _e489 = sum_0_0_;
                sum_0_0_ = metal::fma(v48_, metal::float4(v46_.x), _e489);
                metal::float4 _e493 = sum_1_0_;
                sum_1_0_ = metal::fma(v48_, metal::float4(v46_.y), _e493);
                metal::float4 _e497 = sum_2_0_;
                sum_2_0_ = metal::fma(v48_, metal::float4(v46_.z), _e497);
                metal::float4 _e501 = sum_3_0_;
                sum_3_0_ = metal::fma(v48_, metal::float4(v46_.w), _e501);
                metal::float4 _e505 = sum_4_0_;
                sum_4_0_ = metal::fma(v48_, metal::float4(v47_.x), _e505);
                metal::float4 _e509 = sum_5_0_;
                sum_5_0_ = metal::fma(v48_, metal::float4(v47_.y), _e509);
                metal::float4 _e513 = sum_6_0_;
                sum_6_0_ = metal::fma(v48_, metal::float4(v47_.z), _e513);
                metal::float4 _e517 = sum_7_0_;
                sum_7_0_ = metal::fma(v48_, metal::float4(v47_.w), _e517);
                uint v49_ = (v24_ * 17u) + ty;
                metal::float4 v50_ = left.inner[v49_ + 102u];
                metal::float4 v51_ = left.inner[v49_ + 110u];
                metal::float4 v52_ = right.inner[((v24_ * 17u) + tx) + 102u];
                metal::float4 _e542 = sum_0_0_;
                sum_0_0_ = metal::fma(v52_, metal::float4(v50_.x), _e542);
                metal::float4 _e546 = sum_1_0_;
                sum_1_0_ = metal::fma(v52_, metal::float4(v50_.y), _e546);
                metal::float4 _e550 = sum_2_0_;
                sum_2_0_ = metal::fma(v52_, metal::float4(v50_.z), _e550);
                metal::float4 _e554 = sum_3_0_;
                sum_3_0_ = metal::fma(v52_, metal::float4(v50_.w), _e554);
                metal::float4 _e558 = sum_4_0_;
                sum_4_0_ = metal::fma(v52_, metal::float4(v51_.x), _e558);
                metal::float4 _e562 = sum_5_0_;
                sum_5_0_ = metal::fma(v52_, metal::float4(v51_.y), _e562);
                metal::float4 _e566 = sum_6_0_;
                sum_6_0_ = metal::fma(v52_, metal::float4(v51_.z), _e566);
                metal::float4 _e570 = sum_7_0_;
                sum_7_0_ = metal::fma(v52_, metal::float4(v51_.w), _e570);
                uint v53_ = (v24_ * 17u) + ty;
                metal::float4 v54_ = left.inner[v53_ + 119u];
                metal::float4 v55_ = left.inner[v53_ + 127u];
                metal::float4 v56_ = right.inner[((v24_ * 17u) + tx) + 119u];
                metal::float4 _e595 = sum_0_0_;
                sum_0_0_ = metal::fma(v56_, metal::float4(v54_.x), _e595);
                metal::float4 _e599 = sum_1_0_;
                sum_1_0_ = metal::fma(v56_, metal::float4(v54_.y), _e599);
                metal::float4 _e603 = sum_2_0_;
                sum_2_0_ = metal::fma(v56_, metal::float4(v54_.z), _e603);
                metal::float4 _e607 = sum_3_0_;
                sum_3_0_ = metal::fma(v56_, metal::float4(v54_.w), _e607);
                metal::float4 _e611 = sum_4_0_;
                sum_4_0_ = metal::fma(v56_, metal::float4(v55_.x), _e611);
                metal::float4 _e615 = sum_5_0_;
                sum_5_0_ = metal::fma(v56_, metal::float4(v55_.y), _e615);
                metal::float4 _e619 = sum_6_0_;
                sum_6_0_ = metal::fma(v56_, metal::float4(v55_.z), _e619);
                metal::float4 _e623 = sum_7_0_;
                sum_7_0_ = metal::fma(v56_, metal::float4(v55_.w), _e623);
                uint other = 16u - base;
                metal::float4 _e633 = left_0_;
                left.inner[((other + v4_) * 17u) + v3_] = _e633;
                metal::float4 _e640 = right_0_;
                right.inner[((other + v6_) * 17u) + v5_] = _e640;
                current = other;
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint row_2_ = row + 2u;
        uint row_3_ = row + 4u;
        uint row_4_ = row + 6u;
        metal::float4 _e664 = sum_0_0_;
        left.inner[local_index] = _e664;
        metal::float4 _e669 = sum_1_0_;
        left.inner[local_index + 256u] = _e669;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v57_ = ((row & 1u) * 256u) + v0_;
        metal::float4 v58_ = left.inner[v57_];
        metal::float4 _e678 = sum_0_0_2_;
        sum_0_0_2_ = _e678 + v58_;
        metal::float4 v59_ = left.inner[v57_ + 128u];
        metal::float4 _e685 = sum_0_0_2_;
        sum_0_0_2_ = _e685 + v59_;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        metal::float4 _e689 = sum_2_0_;
        left.inner[local_index] = _e689;
        metal::float4 _e694 = sum_3_0_;
        left.inner[local_index + 256u] = _e694;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v60_ = ((row & 1u) * 256u) + v0_;
        metal::float4 v61_ = left.inner[v60_];
        metal::float4 _e703 = sum_1_0_2_;
        sum_1_0_2_ = _e703 + v61_;
        metal::float4 v62_ = left.inner[v60_ + 128u];
        metal::float4 _e710 = sum_1_0_2_;
        sum_1_0_2_ = _e710 + v62_;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        metal::float4 _e714 = sum_4_0_;
        left.inner[local_index] = _e714;
        metal::float4 _e719 = sum_5_0_;
        left.inner[local_index + 256u] = _e719;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v63_ = ((row & 1u) * 256u) + v0_;
        metal::float4 v64_ = left.inner[v63_];
        metal::float4 _e728 = sum_2_0_2_;
        sum_2_0_2_ = _e728 + v64_;
        metal::float4 v65_ = left.inner[v63_ + 128u];
        metal::float4 _e735 = sum_2_0_2_;
        sum_2_0_2_ = _e735 + v65_;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        metal::float4 _e739 = sum_6_0_;
        left.inner[local_index] = _e739;
        metal::float4 _e744 = sum_7_0_;
        left.inner[local_index + 256u] = _e744;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v66_ = ((row & 1u) * 256u) + v0_;
        metal::float4 v67_ = left.inner[v66_];
        metal::float4 _e753 = sum_3_0_2_;
        sum_3_0_2_ = _e753 + v67_;
        metal::float4 v68_ = left.inner[v66_ + 128u];
        metal::float4 _e760 = sum_3_0_2_;
        sum_3_0_2_ = _e760 + v68_;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v69_ = (tile_m * 64u) + (((ty + ((row >> 2u) * 8u)) * 4u) + (row & 3u));
        uint v70_ = (tile_m * 64u) + (((ty + ((row_2_ >> 2u) * 8u)) * 4u) + (row_2_ & 3u));
        uint v71_ = (tile_m * 64u) + (((ty + ((row_3_ >> 2u) * 8u)) * 4u) + (row_3_ & 3u));
        uint v72_ = (tile_m * 64u) + (((ty + ((row_4_ >> 2u) * 8u)) * 4u) + (row_4_ & 3u));
        uint v73_ = (tile_n * 64u) + (tx * 4u);
        uint v74_ = v73_ + 1u;
        uint v75_ = v73_ + 2u;
        uint v76_ = v73_ + 3u;
        uint _e827 = params.m;
        if (v69_ < _e827) {
            metal::float4 v77_ = sum_0_0_2_;
            uint _e832 = params.n;
            if (v73_ < _e832) {
                y0_[0] = v77_.x;
            }
            uint _e839 = params.n;
            if (v74_ < _e839) {
                y0_[0] = v77_.y;
            }
            uint _e846 = params.n;
            if (v75_ < _e846) {
                y0_[0] = v77_.z;
            }
            uint _e853 = params.n;
            if (v76_ < _e853) {
                y0_[0] = v77_.w;
            }
        }
        uint _e860 = params.m;
        if (v70_ < _e860) {
            metal::float4 v78_ = sum_1_0_2_;
            uint _e865 = params.n;
            if (v73_ < _e865) {
                y0_[0] = v78_.x;
            }
            uint _e872 = params.n;
            if (v74_ < _e872) {
                y0_[0] = v78_.y;
            }
            uint _e879 = params.n;
            if (v75_ < _e879) {
                y0_[0] = v78_.z;
            }
            uint _e886 = params.n;
            if (v76_ < _e886) {
                y0_[0] = v78_.w;
            }
        }
        uint _e893 = params.m;
        if (v71_ < _e893) {
            metal::float4 v79_ = sum_2_0_2_;
            uint _e898 = params.n;
            if (v73_ < _e898) {
                y0_[0] = v79_.x;
            }
            uint _e905 = params.n;
            if (v74_ < _e905) {
                y0_[0] = v79_.y;
            }
            uint _e912 = params.n;
            if (v75_ < _e912) {
                y0_[0] = v79_.z;
            }
            uint _e919 = params.n;
            if (v76_ < _e919) {
                y0_[0] = v79_.w;
            }
        }
        uint _e926 = params.m;
        if (v72_ < _e926) {
            metal::float4 v80_ = sum_3_0_2_;
            uint _e931 = params.n;
            if (v73_ < _e931) {
                y0_[0] = v80_.x;
            }
            uint _e938 = params.n;
            if (v74_ < _e938) {
                y0_[0] = v80_.y;
            }
            uint _e945 = params.n;
            if (v75_ < _e945) {
                y0_[0] = v80_.z;
            }
            uint _e952 = params.n;
            if (v76_ < _e952) {
                y0_[0] = v80_.w;
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
