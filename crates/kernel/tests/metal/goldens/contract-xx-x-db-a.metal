// contract 64x64x16/4x4/db a1 b1
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
    metal::float4 left_0_ = metal::float4(0.0);
    metal::float4 right_0_ = metal::float4(0.0);
    uint current = 0u;
    uint from_2_ = 0u;
    uint id = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.total;
    if (id < _e10) {
        uint _e14 = params.tiles_n;
        uint tile_n = id % _e14;
        uint _e18 = params.tiles_n;
        uint _e22 = params.tiles_m;
        uint tile_m = (id / _e18) % _e22;
        uint v0_ = local_index >> 5u;
        uint v1_ = local_index & 31u;
        uint ty = ((v0_ >> 1u) * 4u) + ((v1_ >> 1u) & 3u);
        uint tx = ((v0_ & 1u) * 8u) + ((v1_ & 1u) + ((v1_ >> 3u) * 2u));
        uint v2_ = local_index & 15u;
        uint v3_ = local_index >> 4u;
        uint v4_ = local_index & 15u;
        uint v5_ = local_index >> 4u;
        float v6_ = x1_[0];
        float v7_ = x1_[0];
        float v8_ = x1_[0];
        float v9_ = x1_[0];
        uint _e92 = params.k;
        left_0_ = metal::select(metal::float4(0.0), metal::float4(v6_, v7_, v8_, v9_), metal::bool4(v3_ < _e92));
        float v10_ = x0_[0];
        float v11_ = x0_[0];
        float v12_ = x0_[0];
        float v13_ = x0_[0];
        uint _e113 = params.k;
        right_0_ = metal::select(metal::float4(0.0), metal::float4(v10_, v11_, v12_, v13_), metal::bool4(v5_ < _e113));
        metal::float4 _e124 = left_0_;
        left.inner[(v3_ * 17u) + v2_] = _e124;
        metal::float4 _e130 = right_0_;
        right.inner[(v5_ * 17u) + v4_] = _e130;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e710 = from_2_;
                from_2_ = _e710 + 16u;
            }
            loop_init = false;
            uint _e133 = from_2_;
            uint _e136 = params.k;
            if (_e133 < _e136) {
            } else {
                break;
            }
            {
                uint _e138 = from_2_;
                uint v14_ = _e138 + 16u;
                float v15_ = x1_[0];
                float v16_ = x1_[0];
                float v17_ = x1_[0];
                float v18_ = x1_[0];
                uint _e159 = params.k;
                left_0_ = metal::select(metal::float4(0.0), metal::float4(v15_, v16_, v17_, v18_), metal::bool4((v14_ + v3_) < _e159));
                float v19_ = x0_[0];
                float v20_ = x0_[0];
                float v21_ = x0_[0];
                float v22_ = x0_[0];
                uint _e181 = params.k;
                right_0_ = metal::select(metal::float4(0.0), metal::float4(v19_, v20_, v21_, v22_), metal::bool4((v14_ + v5_) < _e181));
                uint base = current;
                metal::float4 v23_ = left.inner[(base * 17u) + ty];
                metal::float4 v24_ = right.inner[(base * 17u) + tx];
                metal::float4 _e200 = sum_0_0_;
                sum_0_0_ = metal::fma(v24_, metal::float4(v23_.x), _e200);
                metal::float4 _e204 = sum_1_0_;
                sum_1_0_ = metal::fma(v24_, metal::float4(v23_.y), _e204);
                metal::float4 _e208 = sum_2_0_;
                sum_2_0_ = metal::fma(v24_, metal::float4(v23_.z), _e208);
                metal::float4 _e212 = sum_3_0_;
                sum_3_0_ = metal::fma(v24_, metal::float4(v23_.w), _e212);
                metal::float4 v25_ = left.inner[((base * 17u) + ty) + 17u];
                metal::float4 v26_ = right.inner[((base * 17u) + tx) + 17u];
                metal::float4 _e232 = sum_0_0_;
                sum_0_0_ = metal::fma(v26_, metal::float4(v25_.x), _e232);
                metal::float4 _e236 = sum_1_0_;
                sum_1_0_ = metal::fma(v26_, metal::float4(v25_.y), _e236);
                metal::float4 _e240 = sum_2_0_;
                sum_2_0_ = metal::fma(v26_, metal::float4(v25_.z), _e240);
                metal::float4 _e244 = sum_3_0_;
                sum_3_0_ = metal::fma(v26_, metal::float4(v25_.w), _e244);
                metal::float4 v27_ = left.inner[((base * 17u) + ty) + 34u];
                metal::float4 v28_ = right.inner[((base * 17u) + tx) + 34u];
                metal::float4 _e264 = sum_0_0_;
                sum_0_0_ = metal::fma(v28_, metal::float4(v27_.x), _e264);
                metal::float4 _e268 = sum_1_0_;
                sum_1_0_ = metal::fma(v28_, metal::float4(v27_.y), _e268);
                metal::float4 _e272 = sum_2_0_;
                sum_2_0_ = metal::fma(v28_, metal::float4(v27_.z), _e272);
                metal::float4 _e276 = sum_3_0_;
                sum_3_0_ = metal::fma(v28_, metal::float4(v27_.w), _e276);
                metal::float4 v29_ = left.inner[((base * 17u) + ty) + 51u];
                metal::float4 v30_ = right.inner[((base * 17u) + tx) + 51u];
                metal::float4 _e296 = sum_0_0_;
                sum_0_0_ = metal::fma(v30_, metal::float4(v29_.x), _e296);
                metal::float4 _e300 = sum_1_0_;
                sum_1_0_ = metal::fma(v30_, metal::float4(v29_.y), _e300);
                metal::float4 _e304 = sum_2_0_;
                sum_2_0_ = metal::fma(v30_, metal::float4(v29_.z), _e304);
                metal::float4 _e308 = sum_3_0_;
                sum_3_0_ = metal::fma(v30_, metal::float4(v29_.w), _e308);
                metal::float4 v31_ = left.inner[((base * 17u) + ty) + 68u];
                metal::float4 v32_ = right.inner[((base * 17u) + tx) + 68u];
                metal::float4 _e328 = sum_0_0_;
                sum_0_0_ = metal::fma(v32_, metal::float4(v31_.x), _e328);
                metal::float4 _e332 = sum_1_0_;
                sum_1_0_ = metal::fma(v32_, metal::float4(v31_.y), _e332);
                metal::float4 _e336 = sum_2_0_;
                sum_2_0_ = metal::fma(v32_, metal::float4(v31_.z), _e336);
                metal::float4 _e340 = sum_3_0_;
                sum_3_0_ = metal::fma(v32_, metal::float4(v31_.w), _e340);
                metal::float4 v33_ = left.inner[((base * 17u) + ty) + 85u];
                metal::float4 v34_ = right.inner[((base * 17u) + tx) + 85u];
                metal::float4 _e360 = sum_0_0_;
                sum_0_0_ = metal::fma(v34_, metal::float4(v33_.x), _e360);
                metal::float4 _e364 = sum_1_0_;
                sum_1_0_ = metal::fma(v34_, metal::float4(v33_.y), _e364);
                metal::float4 _e368 = sum_2_0_;
                sum_2_0_ = metal::fma(v34_, metal::float4(v33_.z), _e368);
                metal::float4 _e372 = sum_3_0_;
                sum_3_0_ = metal::fma(v34_, metal::float4(v33_.w), _e372);
                metal::float4 v35_ = left.inner[((base * 17u) + ty) + 102u];
                metal::float4 v36_ = right.inner[((base * 17u) + tx) + 102u];
                metal::float4 _e392 = sum_0_0_;
                sum_0_0_ = metal::fma(v36_, metal::float4(v35_.x), _e392);
                metal::float4 _e396 = sum_1_0_;
                sum_1_0_ = metal::fma(v36_, metal::float4(v35_.y), _e396);
                metal::float4 _e400 = sum_2_0_;
                sum_2_0_ = metal::fma(v36_, metal::float4(v35_.z), _e400);
                metal::float4 _e404 = sum_3_0_;
                sum_3_0_ = metal::fma(v36_, metal::float4(v35_.w), _e404);
                metal::float4 v37_ = left.inner[((base * 17u) + ty) + 119u];
                metal::float4 v38_ = right.inner[((base * 17u) + tx) + 119u];
                metal::float4 _e424 = sum_0_0_;
                sum_0_0_ = metal::fma(v38_, metal::float4(v37_.x), _e424);
                metal::float4 _e428 = sum_1_0_;
                sum_1_0_ = metal::fma(v38_, metal::float4(v37_.y), _e428);
                metal::float4 _e432 = sum_2_0_;
                sum_2_0_ = metal::fma(v38_, metal::float4(v37_.z), _e432);
                metal::float4 _e436 = sum_3_0_;
                sum_3_0_ = metal::fma(v38_, metal::float4(v37_.w), _e436);
                metal::float4 v39_ = left.inner[((base * 17u) + ty) + 136u];
                metal::float4 v40_ = right.inner[((base * 17u) + tx) + 136u];
                metal::float4 _e456 = sum_0_0_;
                sum_0_0_ = metal::fma(v40_, metal::float4(v39_.x), _e456);
                metal::float4 _e460 = sum_1_0_;
                sum_1_0_ = metal::fma(v40_, metal::float4(v39_.y), _e460);
                metal::float4 _e464 = sum_2_0_;
                sum_2_0_ = metal::fma(v40_, metal::float4(v39_.z), _e464);
                metal::float4 _e468 = sum_3_0_;
                sum_3_0_ = metal::fma(v40_, metal::float4(v39_.w), _e468);
                metal::float4 v41_ = left.inner[((base * 17u) + ty) + 153u];
                metal::float4 v42_ = right.inner[((base * 17u) + tx) + 153u];
                metal::float4 _e488 = sum_0_0_;
                sum_0_0_ = metal::fma(v42_, metal::float4(v41_.x), _e488);
                metal::float4 _e492 = sum_1_0_;
                sum_1_0_ = metal::fma(v42_, metal::float4(v41_.y), _e492);
                metal::float4 _e496 = sum_2_0_;
                sum_2_0_ = metal::fma(v42_, metal::float4(v41_.z), _e496);
                metal::float4 _e500 = sum_3_0_;
                sum_3_0_ = metal::fma(v42_, metal::float4(v41_.w), _e500);
                metal::float4 v43_ = left.inner[((base * 17u) + ty) + 170u];
                metal::float4 v44_ = right.inner[((base * 17u) + tx) + 170u];
                metal::float4 _e520 = sum_0_0_;
                sum_0_0_ = metal::fma(v44_, metal::float4(v43_.x), _e520);
                metal::float4 _e524 = sum_1_0_;
                sum_1_0_ = metal::fma(v44_, metal::float4(v43_.y), _e524);
                metal::float4 _e528 = sum_2_0_;
                sum_2_0_ = metal::fma(v44_, metal::float4(v43_.z), _e528);
                metal::float4 _e532 = sum_3_0_;
                sum_3_0_ = metal::fma(v44_, metal::float4(v43_.w), _e532);
                metal::float4 v45_ = left.inner[((base * 17u) + ty) + 187u];
                metal::float4 v46_ = right.inner[((base * 17u) + tx) + 187u];
                metal::float4 _e552 = sum_0_0_;
                sum_0_0_ = metal::fma(v46_, metal::float4(v45_.x), _e552);
                metal::float4 _e556 = sum_1_0_;
                sum_1_0_ = metal::fma(v46_, metal::float4(v45_.y), _e556);
                metal::float4 _e560 = sum_2_0_;
                sum_2_0_ = metal::fma(v46_, metal::float4(v45_.z), _e560);
                metal::float4 _e564 = sum_3_0_;
                sum_3_0_ = metal::fma(v46_, metal::float4(v45_.w), _e564);
                metal::float4 v47_ = left.inner[((base * 17u) + ty) + 204u];
                metal::float4 v48_ = right.inner[((base * 17u) + tx) + 204u];
                metal::float4 _e584 = sum_0_0_;
                sum_0_0_ = metal::fma(v48_, metal::float4(v47_.x), _e584);
                metal::float4 _e588 = sum_1_0_;
                sum_1_0_ = metal::fma(v48_, metal::float4(v47_.y), _e588);
                metal::float4 _e592 = sum_2_0_;
                sum_2_0_ = metal::fma(v48_, metal::float4(v47_.z), _e592);
                metal::float4 _e596 = sum_3_0_;
                sum_3_0_ = metal::fma(v48_, metal::float4(v47_.w), _e596);
                metal::float4 v49_ = left.inner[((base * 17u) + ty) + 221u];
                metal::float4 v50_ = right.inner[((base * 17u) + tx) + 221u];
                metal::float4 _e616 = sum_0_0_;
                sum_0_0_ = metal::fma(v50_, metal::float4(v49_.x), _e616);
                metal::float4 _e620 = sum_1_0_;
                sum_1_0_ = metal::fma(v50_, metal::float4(v49_.y), _e620);
                metal::float4 _e624 = sum_2_0_;
                sum_2_0_ = metal::fma(v50_, metal::float4(v49_.z), _e624);
                metal::float4 _e628 = sum_3_0_;
                sum_3_0_ = metal::fma(v50_, metal::float4(v49_.w), _e628);
                metal::float4 v51_ = left.inner[((base * 17u) + ty) + 238u];
                metal::float4 v52_ = right.inner[((base * 17u) + tx) + 238u];
                metal::float4 _e648 = sum_0_0_;
                sum_0_0_ = metal::fma(v52_, metal::float4(v51_.x), _e648);
                metal::float4 _e652 = sum_1_0_;
                sum_1_0_ = metal::fma(v52_, metal::float4(v51_.y), _e652);
                metal::float4 _e656 = sum_2_0_;
                sum_2_0_ = metal::fma(v52_, metal::float4(v51_.z), _e656);
                metal::float4 _e660 = sum_3_0_;
                sum_3_0_ = metal::fma(v52_, metal::float4(v51_.w), _e660);
                metal::float4 v53_ = left.inner[((base * 17u) + ty) + 255u];
                metal::float4 v54_ = right.inner[((base * 17u) + tx) + 255u];
                metal::float4 _e680 = sum_0_0_;
                sum_0_0_ = metal::fma(v54_, metal::float4(v53_.x), _e680);
                metal::float4 _e684 = sum_1_0_;
                sum_1_0_ = metal::fma(v54_, metal::float4(v53_.y), _e684);
                metal::float4 _e688 = sum_2_0_;
                sum_2_0_ = metal::fma(v54_, metal::float4(v53_.z), _e688);
                metal::float4 _e692 = sum_3_0_;
                sum_3_0_ = metal::fma(v54_, metal::float4(v53_.w), _e692);
                uint other = 16u - base;
                metal::float4 _e702 = left_0_;
                left.inner[((other + v3_) * 17u) + v2_] = _e702;
                metal::float4 _e709 = right_0_;
                right.inner[((other + v5_) * 17u) + v4_] = _e709;
                current = other;
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint v55_ = (tile_m * 64u) + (ty * 4u);
        uint v56_ = (tile_n * 64u) + (tx * 4u);
        uint v57_ = v56_ + 1u;
        uint v58_ = v56_ + 2u;
        uint v59_ = v56_ + 3u;
        uint _e731 = params.m;
        if (v55_ < _e731) {
            metal::float4 v60_ = sum_0_0_;
            uint _e736 = params.n;
            if (v56_ < _e736) {
                y0_[0] = v60_.x;
            }
            uint _e743 = params.n;
            if (v57_ < _e743) {
                y0_[0] = v60_.y;
            }
            uint _e750 = params.n;
            if (v58_ < _e750) {
                y0_[0] = v60_.z;
            }
            uint _e757 = params.n;
            if (v59_ < _e757) {
                y0_[0] = v60_.w;
            }
        }
        uint _e766 = params.m;
        if ((v55_ + 1u) < _e766) {
            metal::float4 v61_ = sum_1_0_;
            uint _e771 = params.n;
            if (v56_ < _e771) {
                y0_[0] = v61_.x;
            }
            uint _e778 = params.n;
            if (v57_ < _e778) {
                y0_[0] = v61_.y;
            }
            uint _e785 = params.n;
            if (v58_ < _e785) {
                y0_[0] = v61_.z;
            }
            uint _e792 = params.n;
            if (v59_ < _e792) {
                y0_[0] = v61_.w;
            }
        }
        uint _e801 = params.m;
        if ((v55_ + 2u) < _e801) {
            metal::float4 v62_ = sum_2_0_;
            uint _e806 = params.n;
            if (v56_ < _e806) {
                y0_[0] = v62_.x;
            }
            uint _e813 = params.n;
            if (v57_ < _e813) {
                y0_[0] = v62_.y;
            }
            uint _e820 = params.n;
            if (v58_ < _e820) {
                y0_[0] = v62_.z;
            }
            uint _e827 = params.n;
            if (v59_ < _e827) {
                y0_[0] = v62_.w;
            }
        }
        uint _e836 = params.m;
        if ((v55_ + 3u) < _e836) {
            metal::float4 v63_ = sum_3_0_;
            uint _e841 = params.n;
            if (v56_ < _e841) {
                y0_[0] = v63_.x;
            }
            uint _e848 = params.n;
            if (v57_ < _e848) {
                y0_[0] = v63_.y;
            }
            uint _e855 = params.n;
            if (v58_ < _e855) {
                y0_[0] = v63_.z;
            }
            uint _e862 = params.n;
            if (v59_ < _e862) {
                y0_[0] = v63_.w;
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
