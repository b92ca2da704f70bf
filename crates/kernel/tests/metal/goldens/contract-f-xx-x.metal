// contract f32 32x32x16/16x16 a1 b1
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
    float inner[768];
};
struct type_4 {
    float inner[1024];
};
metal::simdgroup_float8x8 NagaCooperativeLoad(const threadgroup float* ptr, int stride, bool is_row_major) {
    metal::simdgroup_float8x8 m;
    simdgroup_load(m, ptr, stride, 0, is_row_major);
    return m;
}

metal::simdgroup_float8x8 NagaCooperativeMultiplyAdd(const thread metal::simdgroup_float8x8& a, const thread metal::simdgroup_float8x8& b, const thread metal::simdgroup_float8x8& c) {
    metal::simdgroup_float8x8 d;
    simdgroup_multiply_accumulate(d,a,b,c);
    return d;
}


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
, threadgroup type_4& exchange
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::simdgroup_float8x8 sum_0_0_0_ = metal::simdgroup_float8x8 {};
    metal::simdgroup_float8x8 sum_0_0_1_ = metal::simdgroup_float8x8 {};
    metal::simdgroup_float8x8 sum_0_1_0_ = metal::simdgroup_float8x8 {};
    metal::simdgroup_float8x8 sum_0_1_1_ = metal::simdgroup_float8x8 {};
    metal::float4 left_0_2_ = metal::float4(0.0);
    metal::float4 right_0_2_ = metal::float4(0.0);
    uint from_2_ = 0u;
    metal::float4 sum_0_0_ = metal::float4(0.0);
    metal::float4 sum_1_0_ = metal::float4(0.0);
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
        uint v2_ = local_index >> 3u;
        uint v3_ = (local_index & 7u) * 4u;
        float v4_ = x1_[0];
        float v5_ = x1_[0];
        float v6_ = x1_[0];
        float v7_ = x1_[0];
        uint _e79 = params.k;
        left_0_2_ = metal::select(metal::float4(0.0), metal::float4(v4_, v5_, v6_, v7_), metal::bool4(v0_ < _e79));
        float v8_ = x0_[0];
        float v9_ = x0_[0];
        float v10_ = x0_[0];
        float v11_ = x0_[0];
        uint _e100 = params.k;
        right_0_2_ = metal::select(metal::float4(0.0), metal::float4(v8_, v9_, v10_, v11_), metal::bool4(v2_ < _e100));
        metal::float4 v12_ = left_0_2_;
        uint v13_ = (v0_ * 10u) + (v1_ >> 2u);
        left_0_.inner[v13_ * 4u] = v12_.x;
        left_0_.inner[(v13_ * 4u) + 1u] = v12_.y;
        left_0_.inner[(v13_ * 4u) + 2u] = v12_.z;
        left_0_.inner[(v13_ * 4u) + 3u] = v12_.w;
        metal::float4 v14_ = right_0_2_;
        uint v15_ = (v2_ * 10u) + (v3_ >> 2u);
        right_0_.inner[v15_ * 4u] = v14_.x;
        right_0_.inner[(v15_ * 4u) + 1u] = v14_.y;
        right_0_.inner[(v15_ * 4u) + 2u] = v14_.z;
        right_0_.inner[(v15_ * 4u) + 3u] = v14_.w;
        float v16_ = x1_[0];
        float v17_ = x1_[0];
        float v18_ = x1_[0];
        float v19_ = x1_[0];
        uint _e187 = params.k;
        left_0_2_ = metal::select(metal::float4(0.0), metal::float4(v16_, v17_, v18_, v19_), metal::bool4((16u + v0_) < _e187));
        float v20_ = x0_[0];
        float v21_ = x0_[0];
        float v22_ = x0_[0];
        float v23_ = x0_[0];
        uint _e210 = params.k;
        right_0_2_ = metal::select(metal::float4(0.0), metal::float4(v20_, v21_, v22_, v23_), metal::bool4((16u + v2_) < _e210));
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e428 = from_2_;
                from_2_ = _e428 + 16u;
            }
            loop_init = false;
            uint _e216 = from_2_;
            uint _e219 = params.k;
            if (_e216 < _e219) {
            } else {
                break;
            }
            {
                metal::simdgroup_float8x8 a = NagaCooperativeLoad(&left_0_.inner[(subgroup_row >> 2u) * 4u], 40u, true);
                metal::simdgroup_float8x8 a_2_ = NagaCooperativeLoad(&left_0_.inner[((subgroup_row + 8u) >> 2u) * 4u], 40u, true);
                metal::simdgroup_float8x8 b = NagaCooperativeLoad(&right_0_.inner[(subgroup_column >> 2u) * 4u], 40u, false);
                metal::simdgroup_float8x8 b_2_ = NagaCooperativeLoad(&right_0_.inner[((subgroup_column + 8u) >> 2u) * 4u], 40u, false);
                metal::simdgroup_float8x8 a_3_ = NagaCooperativeLoad(&left_0_.inner[((subgroup_row >> 2u) + 80u) * 4u], 40u, true);
                metal::simdgroup_float8x8 a_4_ = NagaCooperativeLoad(&left_0_.inner[(((subgroup_row + 8u) >> 2u) + 80u) * 4u], 40u, true);
                metal::simdgroup_float8x8 b_3_ = NagaCooperativeLoad(&right_0_.inner[((subgroup_column >> 2u) + 80u) * 4u], 40u, false);
                metal::simdgroup_float8x8 b_4_ = NagaCooperativeLoad(&right_0_.inner[(((subgroup_column + 8u) >> 2u) + 80u) * 4u], 40u, false);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                metal::float4 v24_ = left_0_2_;
                uint v25_ = (v0_ * 10u) + (v1_ >> 2u);
                left_0_.inner[v25_ * 4u] = v24_.x;
                left_0_.inner[(v25_ * 4u) + 1u] = v24_.y;
                left_0_.inner[(v25_ * 4u) + 2u] = v24_.z;
                left_0_.inner[(v25_ * 4u) + 3u] = v24_.w;
                metal::float4 v26_ = right_0_2_;
                uint v27_ = (v2_ * 10u) + (v3_ >> 2u);
                right_0_.inner[v27_ * 4u] = v26_.x;
                right_0_.inner[(v27_ * 4u) + 1u] = v26_.y;
                right_0_.inner[(v27_ * 4u) + 2u] = v26_.z;
                right_0_.inner[(v27_ * 4u) + 3u] = v26_.w;
                uint _e365 = from_2_;
                uint v28_ = _e365 + 32u;
                float v29_ = x1_[0];
                float v30_ = x1_[0];
                float v31_ = x1_[0];
                float v32_ = x1_[0];
                uint _e386 = params.k;
                left_0_2_ = metal::select(metal::float4(0.0), metal::float4(v29_, v30_, v31_, v32_), metal::bool4((v28_ + v0_) < _e386));
                float v33_ = x0_[0];
                float v34_ = x0_[0];
                float v35_ = x0_[0];
                float v36_ = x0_[0];
                uint _e408 = params.k;
                right_0_2_ = metal::select(metal::float4(0.0), metal::float4(v33_, v34_, v35_, v36_), metal::bool4((v28_ + v2_) < _e408));
                metal::simdgroup_float8x8 _e412 = sum_0_0_0_;
                sum_0_0_0_ = NagaCooperativeMultiplyAdd(a, b, _e412);
                metal::simdgroup_float8x8 _e414 = sum_0_0_1_;
                sum_0_0_1_ = NagaCooperativeMultiplyAdd(a, b_2_, _e414);
                metal::simdgroup_float8x8 _e416 = sum_0_1_0_;
                sum_0_1_0_ = NagaCooperativeMultiplyAdd(a_2_, b, _e416);
                metal::simdgroup_float8x8 _e418 = sum_0_1_1_;
                sum_0_1_1_ = NagaCooperativeMultiplyAdd(a_2_, b_2_, _e418);
                metal::simdgroup_float8x8 _e420 = sum_0_0_0_;
                sum_0_0_0_ = NagaCooperativeMultiplyAdd(a_3_, b_3_, _e420);
                metal::simdgroup_float8x8 _e422 = sum_0_0_1_;
                sum_0_0_1_ = NagaCooperativeMultiplyAdd(a_3_, b_4_, _e422);
                metal::simdgroup_float8x8 _e424 = sum_0_1_0_;
                sum_0_1_0_ = NagaCooperativeMultiplyAdd(a_4_, b_3_, _e424);
                metal::simdgroup_float8x8 _e426 = sum_0_1_1_;
                sum_0_1_1_ = NagaCooperativeMultiplyAdd(a_4_, b_4_, _e426);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint v37_ = subgroup * 256u;
        metal::simdgroup_float8x8 _e439 = sum_0_0_0_;
        simdgroup_store(_e439, &exchange.inner[v37_], 16u);
        metal::simdgroup_float8x8 _e443 = sum_0_0_1_;
        simdgroup_store(_e443, &exchange.inner[v37_ + 8u], 16u);
        metal::simdgroup_float8x8 _e449 = sum_0_1_0_;
        simdgroup_store(_e449, &exchange.inner[v37_ + 128u], 16u);
        metal::simdgroup_float8x8 _e455 = sum_0_1_1_;
        simdgroup_store(_e455, &exchange.inner[v37_ + 136u], 16u);
        metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v38_ = v37_ + (lane * 4u);
        float v39_ = exchange.inner[v38_];
        float v40_ = exchange.inner[v38_ + 1u];
        float v41_ = exchange.inner[v38_ + 2u];
        float v42_ = exchange.inner[v38_ + 3u];
        sum_0_0_ = metal::float4(v39_, v40_, v41_, v42_);
        uint v43_ = v37_ + ((lane + 32u) * 4u);
        float v44_ = exchange.inner[v43_];
        float v45_ = exchange.inner[v43_ + 1u];
        float v46_ = exchange.inner[v43_ + 2u];
        float v47_ = exchange.inner[v43_ + 3u];
        sum_1_0_ = metal::float4(v44_, v45_, v46_, v47_);
        metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint v48_ = (tile_n * 32u) + (subgroup_column + ((lane & 3u) * 4u));
        uint v49_ = v48_ + 1u;
        uint v50_ = v48_ + 2u;
        uint v51_ = v48_ + 3u;
        uint _e529 = params.m;
        if (((tile_m * 32u) + (subgroup_row + (lane >> 2u))) < _e529) {
            metal::float4 v52_ = sum_0_0_;
            uint _e534 = params.n;
            if (v48_ < _e534) {
                y0_[0] = v52_.x;
            }
            uint _e541 = params.n;
            if (v49_ < _e541) {
                y0_[0] = v52_.y;
            }
            uint _e548 = params.n;
            if (v50_ < _e548) {
                y0_[0] = v52_.z;
            }
            uint _e555 = params.n;
            if (v51_ < _e555) {
                y0_[0] = v52_.w;
            }
        }
        uint _e570 = params.m;
        if (((tile_m * 32u) + ((subgroup_row + 8u) + (lane >> 2u))) < _e570) {
            metal::float4 v53_ = sum_1_0_;
            uint _e575 = params.n;
            if (v48_ < _e575) {
                y0_[0] = v53_.x;
            }
            uint _e582 = params.n;
            if (v49_ < _e582) {
                y0_[0] = v53_.y;
            }
            uint _e589 = params.n;
            if (v50_ < _e589) {
                y0_[0] = v53_.z;
            }
            uint _e596 = params.n;
            if (v51_ < _e596) {
                y0_[0] = v53_.w;
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
