// contract 64x64x16/4x4 a1 b1
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
    metal::float4 inner[272];
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
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e544 = from_2_;
                from_2_ = _e544 + 16u;
            }
            loop_init = false;
            uint _e71 = from_2_;
            uint _e74 = params.k;
            if (_e71 < _e74) {
            } else {
                break;
            }
            {
                float v6_ = x1_[0];
                float v7_ = x1_[0];
                float v8_ = x1_[0];
                float v9_ = x1_[0];
                uint _e96 = from_2_;
                uint _e100 = params.k;
                left.inner[(v3_ * 17u) + v2_] = metal::select(metal::float4(0.0), metal::float4(v6_, v7_, v8_, v9_), metal::bool4((_e96 + v3_) < _e100));
                float v10_ = x0_[0];
                float v11_ = x0_[0];
                float v12_ = x0_[0];
                float v13_ = x0_[0];
                uint _e124 = from_2_;
                uint _e128 = params.k;
                right.inner[(v5_ * 17u) + v4_] = metal::select(metal::float4(0.0), metal::float4(v10_, v11_, v12_, v13_), metal::bool4((_e124 + v5_) < _e128));
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                metal::float4 v14_ = left.inner[ty];
                metal::float4 v15_ = right.inner[tx];
                metal::float4 _e140 = sum_0_0_;
                sum_0_0_ = metal::fma(v15_, metal::float4(v14_.x), _e140);
                metal::float4 _e144 = sum_1_0_;
                sum_1_0_ = metal::fma(v15_, metal::float4(v14_.y), _e144);
                metal::float4 _e148 = sum_2_0_;
                sum_2_0_ = metal::fma(v15_, metal::float4(v14_.z), _e148);
                metal::float4 _e152 = sum_3_0_;
                sum_3_0_ = metal::fma(v15_, metal::float4(v14_.w), _e152);
                metal::float4 v16_ = left.inner[ty + 17u];
                metal::float4 v17_ = right.inner[tx + 17u];
                metal::float4 _e166 = sum_0_0_;
                sum_0_0_ = metal::fma(v17_, metal::float4(v16_.x), _e166);
                metal::float4 _e170 = sum_1_0_;
                sum_1_0_ = metal::fma(v17_, metal::float4(v16_.y), _e170);
                metal::float4 _e174 = sum_2_0_;
                sum_2_0_ = metal::fma(v17_, metal::float4(v16_.z), _e174);
                metal::float4 _e178 = sum_3_0_;
                sum_3_0_ = metal::fma(v17_, metal::float4(v16_.w), _e178);
                metal::float4 v18_ = left.inner[ty + 34u];
                metal::float4 v19_ = right.inner[tx + 34u];
                metal::float4 _e192 = sum_0_0_;
                sum_0_0_ = metal::fma(v19_, metal::float4(v18_.x), _e192);
                metal::float4 _e196 = sum_1_0_;
                sum_1_0_ = metal::fma(v19_, metal::float4(v18_.y), _e196);
                metal::float4 _e200 = sum_2_0_;
                sum_2_0_ = metal::fma(v19_, metal::float4(v18_.z), _e200);
                metal::float4 _e204 = sum_3_0_;
                sum_3_0_ = metal::fma(v19_, metal::float4(v18_.w), _e204);
                metal::float4 v20_ = left.inner[ty + 51u];
                metal::float4 v21_ = right.inner[tx + 51u];
                metal::float4 _e218 = sum_0_0_;
                sum_0_0_ = metal::fma(v21_, metal::float4(v20_.x), _e218);
                metal::float4 _e222 = sum_1_0_;
                sum_1_0_ = metal::fma(v21_, metal::float4(v20_.y), _e222);
                metal::float4 _e226 = sum_2_0_;
                sum_2_0_ = metal::fma(v21_, metal::float4(v20_.z), _e226);
                metal::float4 _e230 = sum_3_0_;
                sum_3_0_ = metal::fma(v21_, metal::float4(v20_.w), _e230);
                metal::float4 v22_ = left.inner[ty + 68u];
                metal::float4 v23_ = right.inner[tx + 68u];
                metal::float4 _e244 = sum_0_0_;
                sum_0_0_ = metal::fma(v23_, metal::float4(v22_.x), _e244);
                metal::float4 _e248 = sum_1_0_;
                sum_1_0_ = metal::fma(v23_, metal::float4(v22_.y), _e248);
                metal::float4 _e252 = sum_2_0_;
                sum_2_0_ = metal::fma(v23_, metal::float4(v22_.z), _e252);
                metal::float4 _e256 = sum_3_0_;
                sum_3_0_ = metal::fma(v23_, metal::float4(v22_.w), _e256);
                metal::float4 v24_ = left.inner[ty + 85u];
                metal::float4 v25_ = right.inner[tx + 85u];
                metal::float4 _e270 = sum_0_0_;
                sum_0_0_ = metal::fma(v25_, metal::float4(v24_.x), _e270);
                metal::float4 _e274 = sum_1_0_;
                sum_1_0_ = metal::fma(v25_, metal::float4(v24_.y), _e274);
                metal::float4 _e278 = sum_2_0_;
                sum_2_0_ = metal::fma(v25_, metal::float4(v24_.z), _e278);
                metal::float4 _e282 = sum_3_0_;
                sum_3_0_ = metal::fma(v25_, metal::float4(v24_.w), _e282);
                metal::float4 v26_ = left.inner[ty + 102u];
                metal::float4 v27_ = right.inner[tx + 102u];
                metal::float4 _e296 = sum_0_0_;
                sum_0_0_ = metal::fma(v27_, metal::float4(v26_.x), _e296);
                metal::float4 _e300 = sum_1_0_;
                sum_1_0_ = metal::fma(v27_, metal::float4(v26_.y), _e300);
                metal::float4 _e304 = sum_2_0_;
                sum_2_0_ = metal::fma(v27_, metal::float4(v26_.z), _e304);
                metal::float4 _e308 = sum_3_0_;
                sum_3_0_ = metal::fma(v27_, metal::float4(v26_.w), _e308);
                metal::float4 v28_ = left.inner[ty + 119u];
                metal::float4 v29_ = right.inner[tx + 119u];
                metal::float4 _e322 = sum_0_0_;
                sum_0_0_ = metal::fma(v29_, metal::float4(v28_.x), _e322);
                metal::float4 _e326 = sum_1_0_;
                sum_1_0_ = metal::fma(v29_, metal::float4(v28_.y), _e326);
                metal::float4 _e330 = sum_2_0_;
                sum_2_0_ = metal::fma(v29_, metal::float4(v28_.z), _e330);
                metal::float4 _e334 = sum_3_0_;
                sum_3_0_ = metal::fma(v29_, metal::float4(v28_.w), _e334);
                metal::float4 v30_ = left.inner[ty + 136u];
                metal::float4 v31_ = right.inner[tx + 136u];
                metal::float4 _e348 = sum_0_0_;
                sum_0_0_ = metal::fma(v31_, metal::float4(v30_.x), _e348);
                metal::float4 _e352 = sum_1_0_;
                sum_1_0_ = metal::fma(v31_, metal::float4(v30_.y), _e352);
                metal::float4 _e356 = sum_2_0_;
                sum_2_0_ = metal::fma(v31_, metal::float4(v30_.z), _e356);
                metal::float4 _e360 = sum_3_0_;
                sum_3_0_ = metal::fma(v31_, metal::float4(v30_.w), _e360);
                metal::float4 v32_ = left.inner[ty + 153u];
                metal::float4 v33_ = right.inner[tx + 153u];
                metal::float4 _e374 = sum_0_0_;
                sum_0_0_ = metal::fma(v33_, metal::float4(v32_.x), _e374);
                metal::float4 _e378 = sum_1_0_;
                sum_1_0_ = metal::fma(v33_, metal::float4(v32_.y), _e378);
                metal::float4 _e382 = sum_2_0_;
                sum_2_0_ = metal::fma(v33_, metal::float4(v32_.z), _e382);
                metal::float4 _e386 = sum_3_0_;
                sum_3_0_ = metal::fma(v33_, metal::float4(v32_.w), _e386);
                metal::float4 v34_ = left.inner[ty + 170u];
                metal::float4 v35_ = right.inner[tx + 170u];
                metal::float4 _e400 = sum_0_0_;
                sum_0_0_ = metal::fma(v35_, metal::float4(v34_.x), _e400);
                metal::float4 _e404 = sum_1_0_;
                sum_1_0_ = metal::fma(v35_, metal::float4(v34_.y), _e404);
                metal::float4 _e408 = sum_2_0_;
                sum_2_0_ = metal::fma(v35_, metal::float4(v34_.z), _e408);
                metal::float4 _e412 = sum_3_0_;
                sum_3_0_ = metal::fma(v35_, metal::float4(v34_.w), _e412);
                metal::float4 v36_ = left.inner[ty + 187u];
                metal::float4 v37_ = right.inner[tx + 187u];
                metal::float4 _e426 = sum_0_0_;
                sum_0_0_ = metal::fma(v37_, metal::float4(v36_.x), _e426);
                metal::float4 _e430 = sum_1_0_;
                sum_1_0_ = metal::fma(v37_, metal::float4(v36_.y), _e430);
                metal::float4 _e434 = sum_2_0_;
                sum_2_0_ = metal::fma(v37_, metal::float4(v36_.z), _e434);
                metal::float4 _e438 = sum_3_0_;
                sum_3_0_ = metal::fma(v37_, metal::float4(v36_.w), _e438);
                metal::float4 v38_ = left.inner[ty + 204u];
                metal::float4 v39_ = right.inner[tx + 204u];
                metal::float4 _e452 = sum_0_0_;
                sum_0_0_ = metal::fma(v39_, metal::float4(v38_.x), _e452);
                metal::float4 _e456 = sum_1_0_;
                sum_1_0_ = metal::fma(v39_, metal::float4(v38_.y), _e456);
                metal::float4 _e460 = sum_2_0_;
                sum_2_0_ = metal::fma(v39_, metal::float4(v38_.z), _e460);
                metal::float4 _e464 = sum_3_0_;
                sum_3_0_ = metal::fma(v39_, metal::float4(v38_.w), _e464);
                metal::float4 v40_ = left.inner[ty + 221u];
                metal::float4 v41_ = right.inner[tx + 221u];
                metal::float4 _e478 = sum_0_0_;
                sum_0_0_ = metal::fma(v41_, metal::float4(v40_.x), _e478);
                metal::float4 _e482 = sum_1_0_;
                sum_1_0_ = metal::fma(v41_, metal::float4(v40_.y), _e482);
                metal::float4 _e486 = sum_2_0_;
                sum_2_0_ = metal::fma(v41_, metal::float4(v40_.z), _e486);
                metal::float4 _e490 = sum_3_0_;
                sum_3_0_ = metal::fma(v41_, metal::float4(v40_.w), _e490);
                metal::float4 v42_ = left.inner[ty + 238u];
                metal::float4 v43_ = right.inner[tx + 238u];
                metal::float4 _e504 = sum_0_0_;
                sum_0_0_ = metal::fma(v43_, metal::float4(v42_.x), _e504);
                metal::float4 _e508 = sum_1_0_;
                sum_1_0_ = metal::fma(v43_, metal::float4(v42_.y), _e508);
                metal::float4 _e512 = sum_2_0_;
                sum_2_0_ = metal::fma(v43_, metal::float4(v42_.z), _e512);
                metal::float4 _e516 = sum_3_0_;
                sum_3_0_ = metal::fma(v43_, metal::float4(v42_.w), _e516);
                metal::float4 v44_ = left.inner[ty + 255u];
                metal::float4 v45_ = right.inner[tx + 255u];
                metal::float4 _e530 = sum_0_0_;
                sum_0_0_ = metal::fma(v45_, metal::float4(v44_.x), _e530);
                metal::float4 _e534 = sum_1_0_;
                sum_1_0_ = metal::fma(v45_, metal::float4(v44_.y), _e534);
                metal::float4 _e538 = sum_2_0_;
                sum_2_0_ = metal::fma(v45_, metal::float4(v44_.z), _e538);
                metal::float4 _e542 = sum_3_0_;
                sum_3_0_ = metal::fma(v45_, metal::float4(v44_.w), _e542);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint v46_ = (tile_m * 64u) + (ty * 4u);
        uint v47_ = (tile_n * 64u) + (tx * 4u);
        uint v48_ = v47_ + 1u;
        uint v49_ = v47_ + 2u;
        uint v50_ = v47_ + 3u;
        uint _e565 = params.m;
        if (v46_ < _e565) {
            metal::float4 v51_ = sum_0_0_;
            uint _e570 = params.n;
            if (v47_ < _e570) {
                y0_[0] = v51_.x;
            }
            uint _e577 = params.n;
            if (v48_ < _e577) {
                y0_[0] = v51_.y;
            }
            uint _e584 = params.n;
            if (v49_ < _e584) {
                y0_[0] = v51_.z;
            }
            uint _e591 = params.n;
            if (v50_ < _e591) {
                y0_[0] = v51_.w;
            }
        }
        uint _e600 = params.m;
        if ((v46_ + 1u) < _e600) {
            metal::float4 v52_ = sum_1_0_;
            uint _e605 = params.n;
            if (v47_ < _e605) {
                y0_[0] = v52_.x;
            }
            uint _e612 = params.n;
            if (v48_ < _e612) {
                y0_[0] = v52_.y;
            }
            uint _e619 = params.n;
            if (v49_ < _e619) {
                y0_[0] = v52_.z;
            }
            uint _e626 = params.n;
            if (v50_ < _e626) {
                y0_[0] = v52_.w;
            }
        }
        uint _e635 = params.m;
        if ((v46_ + 2u) < _e635) {
            metal::float4 v53_ = sum_2_0_;
            uint _e640 = params.n;
            if (v47_ < _e640) {
                y0_[0] = v53_.x;
            }
            uint _e647 = params.n;
            if (v48_ < _e647) {
                y0_[0] = v53_.y;
            }
            uint _e654 = params.n;
            if (v49_ < _e654) {
                y0_[0] = v53_.z;
            }
            uint _e661 = params.n;
            if (v50_ < _e661) {
                y0_[0] = v53_.w;
            }
        }
        uint _e670 = params.m;
        if ((v46_ + 3u) < _e670) {
            metal::float4 v54_ = sum_3_0_;
            uint _e675 = params.n;
            if (v47_ < _e675) {
                y0_[0] = v54_.x;
            }
            uint _e682 = params.n;
            if (v48_ < _e682) {
                y0_[0] = v54_.y;
            }
            uint _e689 = params.n;
            if (v49_ < _e689) {
                y0_[0] = v54_.z;
            }
            uint _e696 = params.n;
            if (v50_ < _e696) {
                y0_[0] = v54_.w;
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
