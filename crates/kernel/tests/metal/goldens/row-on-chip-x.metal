// row on-chip 16x16 rows fast unrolled 5
// language: metal2.4
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
};

struct Params {
    uint rows;
    uint width;
};
typedef float type_2[1];
struct type_3 {
    float inner[256];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(2)]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2& y0_ [[buffer(1)]]
, threadgroup type_3& lanes
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float sum = 0.0;
    uint v0_ = local_index >> 4u;
    uint v1_ = local_index & 15u;
    uint v2_ = (((workgroup_id.y * workgroup_count.x) + workgroup_id.x) * 16u) + v1_;
    uint _e17 = params.rows;
    uint row = metal::min(v2_, _e17 - 1u);
    uint v3_ = (v0_ * 16u) + v1_;
    float v4_ = x0_[row + (v0_ * 9u)];
    float _e32 = sum;
    sum = _e32 + v4_;
    float v5_ = x0_[row + ((v0_ + 16u) * 9u)];
    float _e42 = sum;
    sum = _e42 + v5_;
    float v6_ = x0_[row + ((v0_ + 32u) * 9u)];
    float _e52 = sum;
    sum = _e52 + v6_;
    float v7_ = x0_[row + ((v0_ + 48u) * 9u)];
    float _e62 = sum;
    sum = _e62 + v7_;
    uint v8_ = v0_ + 64u;
    uint _e69 = params.width;
    float v9_ = x0_[row + (metal::min(v8_, _e69 - 1u) * 9u)];
    float _e78 = sum;
    uint _e82 = params.width;
    sum = _e78 + ((v8_ < _e82) ? v9_ : 0.0);
    float _e88 = sum;
    lanes.inner[v3_] = _e88;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (v0_ < 8u) {
        float v10_ = lanes.inner[v3_ + 128u];
        float _e96 = sum;
        sum = _e96 + v10_;
        float _e100 = sum;
        lanes.inner[v3_] = _e100;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (v0_ < 4u) {
        float v11_ = lanes.inner[v3_ + 64u];
        float _e108 = sum;
        sum = _e108 + v11_;
        float _e112 = sum;
        lanes.inner[v3_] = _e112;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (v0_ < 2u) {
        float v12_ = lanes.inner[v3_ + 32u];
        float _e120 = sum;
        sum = _e120 + v12_;
        float _e124 = sum;
        lanes.inner[v3_] = _e124;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (v0_ < 1u) {
        float v13_ = lanes.inner[v3_ + 16u];
        float _e132 = sum;
        sum = _e132 + v13_;
        float _e136 = sum;
        lanes.inner[v3_] = _e136;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    float v14_ = lanes.inner[v3_ - (v0_ * 16u)];
    sum = v14_;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    float v15_ = sum;
    uint _e148 = params.rows;
    if ((v0_ == 0u) & (v2_ < _e148)) {
        y0_[row] = v15_;
        return;
    } else {
        return;
    }
}
