// contract 64x32x32/8x4/s4 a4k b4k
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
typedef metal::float4 type_3[1];
typedef float type_4[1];
struct type_5 {
    metal::float4 inner[1088];
};
struct type_6 {
    metal::float4 inner[576];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(3)]]
, device type_3 const& x0_ [[buffer(0)]]
, device type_3 const& x1_ [[buffer(1)]]
, device type_4& y0_ [[buffer(2)]]
, threadgroup type_5& left
, threadgroup type_6& right
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
    metal::float4 left_1_ = metal::float4(0.0);
    metal::float4 right_0_ = metal::float4(0.0);
    uint current = 0u;
    uint from_2_ = 0u;
    metal::float4 sum_0_0_2_ = metal::float4(0.0);
    metal::float4 sum_1_0_2_ = metal::float4(0.0);
    uint id = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.total;
    if (id < _e10) {
        uint _e14 = params.tiles_n;
        uint tile_n = id % _e14;
        uint _e18 = params.tiles_n;
        uint _e22 = params.tiles_m;
        uint tile_m = (id / _e18) % _e22;
        uint v0_ = local_index & 63u;
        uint row = local_index >> 6u;
        uint v1_ = v0_ & 31u;
        uint tx = (v1_ & 1u) + ((v1_ >> 3u) * 2u);
        uint ty = ((v0_ >> 5u) * 4u) + ((v1_ >> 1u) & 3u);
        uint left_first = tile_m * 64u;
        uint product = (local_index & 7u) * 4u;
        uint v2_ = local_index >> 3u;
        uint _e81 = params.m;
        uint v3_ = metal::min(left_first + v2_, _e81 - 1u);
        uint v4_ = v2_ >> 2u;
        uint v5_ = v2_ & 3u;
        uint v6_ = (local_index + 256u) >> 3u;
        uint _e96 = params.m;
        uint v7_ = metal::min(left_first + v6_, _e96 - 1u);
        uint v8_ = v6_ >> 2u;
        uint v9_ = v6_ & 3u;
        uint right_first = tile_n * 32u;
        uint product_2_ = (local_index & 7u) * 4u;
        uint v10_ = local_index >> 3u;
        uint _e115 = params.n;
        uint v11_ = metal::min(right_first + v10_, _e115 - 1u);
        uint v12_ = v10_ >> 2u;
        uint v13_ = v10_ & 3u;
        uint _e137 = params.k;
        metal::float4 v14_ = x0_[((v3_ * 20u) + metal::min(product, _e137 - 4u)) >> 2u];
        uint _e150 = params.k;
        left_0_ = metal::select(metal::float4(0.0), v14_, metal::bool4(product < _e150));
        uint _e159 = params.k;
        metal::float4 v15_ = x0_[((v7_ * 20u) + metal::min(product, _e159 - 4u)) >> 2u];
        uint _e172 = params.k;
        left_1_ = metal::select(metal::float4(0.0), v15_, metal::bool4(product < _e172));
        uint _e181 = params.k;
        metal::float4 v16_ = x1_[((v11_ * 20u) + metal::min(product_2_, _e181 - 4u)) >> 2u];
        uint _e194 = params.k;
        right_0_ = metal::select(metal::float4(0.0), v16_, metal::bool4(product_2_ < _e194));
        metal::float4 v17_ = left_0_;
        uint v18_ = (product * 17u) + (v4_ ^ ((product >> 3u) & 3u));
        left.inner[v18_][v5_] = v17_.x;
        left.inner[v18_ + 17u][v5_] = v17_.y;
        left.inner[v18_ + 34u][v5_] = v17_.z;
        left.inner[v18_ + 51u][v5_] = v17_.w;
        metal::float4 v19_ = left_1_;
        uint v20_ = (product * 17u) + (v8_ ^ ((product >> 3u) & 3u));
        left.inner[v20_][v9_] = v19_.x;
        left.inner[v20_ + 17u][v9_] = v19_.y;
        left.inner[v20_ + 34u][v9_] = v19_.z;
        left.inner[v20_ + 51u][v9_] = v19_.w;
        metal::float4 v21_ = right_0_;
        uint v22_ = (product_2_ * 9u) + (v12_ ^ ((product_2_ >> 3u) & 3u));
        right.inner[v22_][v13_] = v21_.x;
        right.inner[v22_ + 9u][v13_] = v21_.y;
        right.inner[v22_ + 18u][v13_] = v21_.z;
        right.inner[v22_ + 27u][v13_] = v21_.w;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e974 = from_2_;
                from_2_ = _e974 + 32u;
            }
            loop_init = false;
            uint _e295 = from_2_;
            uint _e298 = params.k;
            if (_e295 < _e298) {
            } else {
                break;
            }
            {
                uint _e300 = from_2_;
                uint v23_ = _e300 + 32u;
                uint v24_ = v23_ + product;
                uint _e309 = params.k;
                metal::float4 v25_ = x0_[((v3_ * 20u) + metal::min(v24_, _e309 - 4u)) >> 2u];
                uint _e322 = params.k;
                left_0_ = metal::select(metal::float4(0.0), v25_, metal::bool4(v24_ < _e322));
                uint v26_ = v23_ + product;
                uint _e332 = params.k;
                metal::float4 v27_ = x0_[((v7_ * 20u) + metal::min(v26_, _e332 - 4u)) >> 2u];
                uint _e345 = params.k;
                left_1_ = metal::select(metal::float4(0.0), v27_, metal::bool4(v26_ < _e345));
                uint v28_ = v23_ + product_2_;
                uint _e355 = params.k;
                metal::float4 v29_ = x1_[((v11_ * 20u) + metal::min(v28_, _e355 - 4u)) >> 2u];
                uint _e368 = params.k;
                right_0_ = metal::select(metal::float4(0.0), v29_, metal::bool4(v28_ < _e368));
                uint base = current;
                uint v30_ = row * 8u;
                uint v31_ = base + v30_;
                uint v32_ = (v31_ * 17u) + (ty ^ ((v30_ >> 3u) & 3u));
                metal::float4 v33_ = left.inner[v32_];
                metal::float4 v34_ = left.inner[v32_ + 8u];
                metal::float4 v35_ = right.inner[(v31_ * 9u) + (tx ^ ((v30_ >> 3u) & 3u))];
                metal::float4 _e405 = sum_0_0_;
                sum_0_0_ = metal::fma(v35_, metal::float4(v33_.x), _e405);
                metal::float4 _e409 = sum_1_0_;
                sum_1_0_ = metal::fma(v35_, metal::float4(v33_.y), _e409);
                metal::float4 _e413 = sum_2_0_;
                sum_2_0_ = metal::fma(v35_, metal::float4(v33_.z), _e413);
                metal::float4 _e417 = sum_3_0_;
                sum_3_0_ = metal::fma(v35_, metal::float4(v33_.w), _e417);
                metal::float4 _e421 = sum_4_0_;
                sum_4_0_ = metal::fma(v35_, metal::float4(v34_.x), _e421);
                metal::float4 _e425 = sum_5_0_;
                sum_5_0_ = metal::fma(v35_, metal::float4(v34_.y), _e425);
                metal::float4 _e429 = sum_6_0_;
                sum_6_0_ = metal::fma(v35_, metal::float4(v34_.z), _e429);
                metal::float4 _e433 = sum_7_0_;
                sum_7_0_ = metal::fma(v35_, metal::float4(v34_.w), _e433);
                uint v36_ = (v31_ * 17u) + (ty ^ ((v30_ >> 3u) & 3u));
                metal::float4 v37_ = left.inner[v36_ + 17u];
                metal::float4 v38_ = left.inner[v36_ + 25u];
                metal::float4 v39_ = right.inner[((v31_ * 9u) + (tx ^ ((v30_ >> 3u) & 3u))) + 9u];
                metal::float4 _e468 = sum_0_0_;
                sum_0_0_ = metal::fma(v39_, metal::float4(v37_.x), _e468);
                metal::float4 _e472 = sum_1_0_;
                sum_1_0_ = metal::fma(v39_, metal::float4(v37_.y), _e472);
                metal::float4 _e476 = sum_2_0_;
                sum_2_0_ = metal::fma(v39_, metal::float4(v37_.z), _e476);
                metal::float4 _e480 = sum_3_0_;
                sum_3_0_ = metal::fma(v39_, metal::float4(v37_.w), _e480);
                metal::float4 _e484 = sum_4_0_;
                sum_4_0_ = metal::fma(v39_, metal::float4(v38_.x), _e484);
                metal::float4 _e488 = sum_5_0_;
                sum_5_0_ = metal::fma(v39_, metal::float4(v38_.y), _e488);
                metal::float4 _e492 = sum_6_0_;
                sum_6_0_ = metal::fma(v39_, metal::float4(v38_.z), _e492);
                metal::float4 _e496 = sum_7_0_;
                sum_7_0_ = metal::fma(v39_, metal::float4(v38_.w), _e496);
                uint v40_ = (v31_ * 17u) + (ty ^ ((v30_ >> 3u) & 3u));
                metal::float4 v41_ = left.inner[v40_ + 34u];
                metal::float4 v42_ = left.inner[v40_ + 42u];
                metal::float4 v43_ = right.inner[((v31_ * 9u) + (tx ^ ((v30_ >> 3u) & 3u))) + 18u];
                metal::float4 _e531 = sum_0_0_;
                sum_0_0_ = metal::fma(v43_, metal::float4(v41_.x), _e531);
                metal::float4 _e535 = sum_1_0_;
                sum_1_0_ = metal::fma(v43_, metal::float4(v41_.y), _e535);
                metal::float4 _e539 = sum_2_0_;
                sum_2_0_ = metal::fma(v43_, metal::float4(v41_.z), _e539);
                metal::float4 _e543 = sum_3_0_;
                sum_3_0_ = metal::fma(v43_, metal::float4(v41_.w), _e543);
                metal::float4 _e547 = sum_4_0_;
                sum_4_0_ = metal::fma(v43_, metal::float4(v42_.x), _e547);
                metal::float4 _e551 = sum_5_0_;
                sum_5_0_ = metal::fma(v43_, metal::float4(v42_.y), _e551);
                metal::float4 _e555 = sum_6_0_;
                sum_6_0_ = metal::fma(v43_, metal::float4(v42_.z), _e555);
                metal::float4 _e559 = sum_7_0_;
                sum_7_0_ = metal::fma(v43_, metal::float4(v42_.w), _e559);
                uint v44_ = (v31_ * 17u) + (ty ^ ((v30_ >> 3u) & 3u));
                metal::float4 v45_ = left.inner[v44_ + 51u];
                metal::float4 v46_ = left.inner[v44_ + 59u];
                metal::float4 v47_ = right.inner[((v31_ * 9u) + (tx ^ ((v30_ >> 3u) & 3u))) + 27u];
                metal::float4 _e594 = sum_0_0_;
                sum_0_0_ = metal::fma(v47_, metal::float4(v45_.x), _e594);
                metal::float4 _e598 = sum_1_0_;
                sum_1_0_ = metal::fma(v47_, metal::float4(v45_.y), _e598);
                metal::float4 _e602 = sum_2_0_;
                sum_2_0_ = metal::fma(v47_, metal::float4(v45_.z), _e602);
                metal::float4 _e606 = sum_3_0_;
                sum_3_0_ = metal::fma(v47_, metal::float4(v45_.w), _e606);
                metal::float4 _e610 = sum_4_0_;
                sum_4_0_ = metal::fma(v47_, metal::float4(v46_.x), _e610);
                metal::float4 _e614 = sum_5_0_;
                sum_5_0_ = metal::fma(v47_, metal::float4(v46_.y), _e614);
                metal::float4 _e618 = sum_6_0_;
                sum_6_0_ = metal::fma(v47_, metal::float4(v46_.z), _e618);
                metal::float4 _e622 = sum_7_0_;
                sum_7_0_ = metal::fma(v47_, metal::float4(v46_.w), _e622);
                uint v48_ = (v31_ * 17u) + (ty ^ ((v30_ >> 3u) & 3u));
                metal::float4 v49_ = left.inner[v48_ + 68u];
                metal::float4 v50_ = left.inner[v48_ + 76u];
                metal::float4 v51_ = right.inner[((v31_ * 9u) + (tx ^ ((v30_ >> 3u) & 3u))) + 36u];
                metal::float4 _e657 = sum_0_0_;
                sum_0_0_ = metal::fma(v51_, metal::float4(v49_.x), _e657);
                metal::float4 _e661 = sum_1_0_;
                sum_1_0_ = metal::fma(v51_, metal::float4(v49_.y), _e661);
                metal::float4 _e665 = sum_2_0_;
                sum_2_0_ = metal::fma(v51_, metal::float4(v49_.z), _e665);
                metal::float4 _e669 = sum_3_0_;
                sum_3_0_ = metal::fma(v51_, metal::float4(v49_.w), _e669);
                metal::float4 _e673 = sum_4_0_;
                sum_4_0_ = metal::fma(v51_, metal::float4(v50_.x), _e673);
                metal::float4 _e677 = sum_5_0_;
                sum_5_0_ = metal::fma(v51_, metal::float4(v50_.y), _e677);
                metal::float4 _e681 = sum_6_0_;
                sum_6_0_ = metal::fma(v51_, metal::float4(v50_.z), _e681);
                metal::float4 _e685 = sum_7_0_;
                sum_7_0_ = metal::fma(v51_, metal::float4(v50_.w), _e685);
                uint v52_ = (v31_ * 17u) + (ty ^ ((v30_ >> 3u) & 3u));
                metal::float4 v53_ = left.inner[v52_ + 85u];
                metal::float4 v54_ = left.inner[v52_ + 93u];
                metal::float4 v55_ = right.inner[((v31_ * 9u) + (tx ^ ((v30_ >> 3u) & 3u))) + 45u];
                metal::float4 _e720 = sum_0_0_;
                sum_0_0_ = metal::fma(v55_, metal::float4(v53_.x), _e720);
                metal::float4 _e724 = sum_1_0_;
                sum_1_0_ = metal::fma(v55_, metal::float4(v53_.y), _e724);
                metal::float4 _e728 = sum_2_0_;
                sum_2_0_ = metal::fma(v55_, metal::float4(v53_.z), _e728);
                metal::float4 _e732 = sum_3_0_;
                sum_3_0_ = metal::fma(v55_, metal::float4(v53_.w), _e732);
                metal::float4 _e736 = sum_4_0_;
                sum_4_0_ = metal::fma(v55_, metal::float4(v54_.x), _e736);
                metal::float4 _e740 = sum_5_0_;
                sum_5_0_ = metal::fma(v55_, metal::float4(v54_.y), _e740);
                metal::float4 _e744 = sum_6_0_;
                sum_6_0_ = metal::fma(v55_, metal::float4(v54_.z), _e744);
                metal::float4 _e748 = sum_7_0_;
                sum_7_0_ = metal::fma(v55_, metal::float4(v54_.w), _e748);
                uint v56_ = (v31_ * 17u) + (ty ^ ((v30_ >> 3u) & 3u));
                metal::float4 v57_ = left.inner[v56_ + 102u];
                metal::float4 v58_ = left.inner[v56_ + 110u];
                metal::float4 v59_ = right.inner[((v31_ * 9u) + (tx ^ ((v30_ >> 3u) & 3u))) + 54u];
                metal::float4 _e783 = sum_0_0_;
                sum_0_0_ = metal::fma(v59_, metal::float4(v57_.x), _e783);
                metal::float4 _e787 = sum_1_0_;
                sum_1_0_ = metal::fma(v59_, metal::float4(v57_.y), _e787);
                metal::float4 _e791 = sum_2_0_;
                sum_2_0_ = metal::fma(v59_, metal::float4(v57_.z), _e791);
                metal::float4 _e795 = sum_3_0_;
                sum_3_0_ = metal::fma(v59_, metal::float4(v57_.w), _e795);
                metal::float4 _e799 = sum_4_0_;
                sum_4_0_ = metal::fma(v59_, metal::float4(v58_.x), _e799);
                metal::float4 _e803 = sum_5_0_;
                sum_5_0_ = metal::fma(v59_, metal::float4(v58_.y), _e803);
                metal::float4 _e807 = sum_6_0_;
                sum_6_0_ = metal::fma(v59_, metal::float4(v58_.z), _e807);
                metal::float4 _e811 = sum_7_0_;
                sum_7_0_ = metal::fma(v59_, metal::float4(v58_.w), _e811);
                uint v60_ = (v31_ * 17u) + (ty ^ ((v30_ >> 3u) & 3u));
                metal::float4 v61_ = left.inner[v60_ + 119u];
                metal::float4 v62_ = left.inner[v60_ + 127u];
                metal::float4 v63_ = right.inner[((v31_ * 9u) + (tx ^ ((v30_ >> 3u) & 3u))) + 63u];
                metal::float4 _e846 = sum_0_0_;
                sum_0_0_ = metal::fma(v63_, metal::float4(v61_.x), _e846);
                metal::float4 _e850 = sum_1_0_;
                sum_1_0_ = metal::fma(v63_, metal::float4(v61_.y), _e850);
                metal::float4 _e854 = sum_2_0_;
                sum_2_0_ = metal::fma(v63_, metal::float4(v61_.z), _e854);
                metal::float4 _e858 = sum_3_0_;
                sum_3_0_ = metal::fma(v63_, metal::float4(v61_.w), _e858);
                metal::float4 _e862 = sum_4_0_;
                sum_4_0_ = metal::fma(v63_, metal::float4(v62_.x), _e862);
                metal::float4 _e866 = sum_5_0_;
                sum_5_0_ = metal::fma(v63_, metal::float4(v62_.y), _e866);
                metal::float4 _e870 = sum_6_0_;
                sum_6_0_ = metal::fma(v63_, metal::float4(v62_.z), _e870);
                metal::float4 _e874 = sum_7_0_;
                sum_7_0_ = metal::fma(v63_, metal::float4(v62_.w), _e874);
                uint other = 32u - base;
                metal::float4 v64_ = left_0_;
                uint v65_ = ((other + product) * 17u) + (v4_ ^ ((product >> 3u) & 3u));
                left.inner[v65_][v5_] = v64_.x;
                left.inner[v65_ + 17u][v5_] = v64_.y;
                left.inner[v65_ + 34u][v5_] = v64_.z;
                left.inner[v65_ + 51u][v5_] = v64_.w;
                metal::float4 v66_ = left_1_;
                uint v67_ = ((other + product) * 17u) + (v8_ ^ ((product >> 3u) & 3u));
                left.inner[v67_][v9_] = v66_.x;
                left.inner[v67_ + 17u][v9_] = v66_.y;
                left.inner[v67_ + 34u][v9_] = v66_.z;
                left.inner[v67_ + 51u][v9_] = v66_.w;
                metal::float4 v68_ = right_0_;
                uint v69_ = ((other + product_2_) * 9u) + (v12_ ^ ((product_2_ >> 3u) & 3u));
                right.inner[v69_][v13_] = v68_.x;
                right.inner[v69_ + 9u][v13_] = v68_.y;
                right.inner[v69_ + 18u][v13_] = v68_.z;
                right.inner[v69_ + 27u][v13_] = v68_.w;
                current = other;
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint row_2_ = row + 4u;
        metal::float4 _e987 = sum_0_0_;
        left.inner[local_index] = _e987;
        metal::float4 _e992 = sum_1_0_;
        left.inner[local_index + 256u] = _e992;
        metal::float4 _e997 = sum_2_0_;
        left.inner[local_index + 512u] = _e997;
        metal::float4 _e1002 = sum_3_0_;
        left.inner[local_index + 768u] = _e1002;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v70_ = ((row & 3u) * 256u) + v0_;
        metal::float4 v71_ = left.inner[v70_];
        metal::float4 _e1011 = sum_0_0_2_;
        sum_0_0_2_ = _e1011 + v71_;
        metal::float4 v72_ = left.inner[v70_ + 64u];
        metal::float4 _e1018 = sum_0_0_2_;
        sum_0_0_2_ = _e1018 + v72_;
        metal::float4 v73_ = left.inner[v70_ + 128u];
        metal::float4 _e1025 = sum_0_0_2_;
        sum_0_0_2_ = _e1025 + v73_;
        metal::float4 v74_ = left.inner[v70_ + 192u];
        metal::float4 _e1032 = sum_0_0_2_;
        sum_0_0_2_ = _e1032 + v74_;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        metal::float4 _e1036 = sum_4_0_;
        left.inner[local_index] = _e1036;
        metal::float4 _e1041 = sum_5_0_;
        left.inner[local_index + 256u] = _e1041;
        metal::float4 _e1046 = sum_6_0_;
        left.inner[local_index + 512u] = _e1046;
        metal::float4 _e1051 = sum_7_0_;
        left.inner[local_index + 768u] = _e1051;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v75_ = ((row & 3u) * 256u) + v0_;
        metal::float4 v76_ = left.inner[v75_];
        metal::float4 _e1060 = sum_1_0_2_;
        sum_1_0_2_ = _e1060 + v76_;
        metal::float4 v77_ = left.inner[v75_ + 64u];
        metal::float4 _e1067 = sum_1_0_2_;
        sum_1_0_2_ = _e1067 + v77_;
        metal::float4 v78_ = left.inner[v75_ + 128u];
        metal::float4 _e1074 = sum_1_0_2_;
        sum_1_0_2_ = _e1074 + v78_;
        metal::float4 v79_ = left.inner[v75_ + 192u];
        metal::float4 _e1081 = sum_1_0_2_;
        sum_1_0_2_ = _e1081 + v79_;
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v80_ = (tile_m * 64u) + (((ty + ((row >> 2u) * 8u)) * 4u) + (row & 3u));
        uint v81_ = (tile_m * 64u) + (((ty + ((row_2_ >> 2u) * 8u)) * 4u) + (row_2_ & 3u));
        uint v82_ = (tile_n * 32u) + (tx * 4u);
        uint v83_ = v82_ + 1u;
        uint v84_ = v82_ + 2u;
        uint v85_ = v82_ + 3u;
        uint _e1122 = params.m;
        if (v80_ < _e1122) {
            metal::float4 v86_ = sum_0_0_2_;
            uint _e1127 = params.n;
            if (v82_ < _e1127) {
                y0_[(v80_ * 17u) + v82_] = v86_.x;
            }
            uint _e1137 = params.n;
            if (v83_ < _e1137) {
                y0_[(v80_ * 17u) + v83_] = v86_.y;
            }
            uint _e1147 = params.n;
            if (v84_ < _e1147) {
                y0_[(v80_ * 17u) + v84_] = v86_.z;
            }
            uint _e1157 = params.n;
            if (v85_ < _e1157) {
                y0_[(v80_ * 17u) + v85_] = v86_.w;
            }
        }
        uint _e1167 = params.m;
        if (v81_ < _e1167) {
            metal::float4 v87_ = sum_1_0_2_;
            uint _e1172 = params.n;
            if (v82_ < _e1172) {
                y0_[(v81_ * 17u) + v82_] = v87_.x;
            }
            uint _e1182 = params.n;
            if (v83_ < _e1182) {
                y0_[(v81_ * 17u) + v83_] = v87_.y;
            }
            uint _e1192 = params.n;
            if (v84_ < _e1192) {
                y0_[(v81_ * 17u) + v84_] = v87_.z;
            }
            uint _e1202 = params.n;
            if (v85_ < _e1202) {
                y0_[(v81_ * 17u) + v85_] = v87_.w;
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
