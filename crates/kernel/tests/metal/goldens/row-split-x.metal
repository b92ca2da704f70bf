// row split 1x256 lanes fast outputs of 1 chunks
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
    uint chunks;
    uint chunk_width;
};
typedef float type_2[1];
typedef uint type_3[1];
struct type_4 {
    float inner[256];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, metal::uint3 workgroup_count [[threadgroups_per_grid]]
, metal::uint3 workgroup_id [[threadgroup_position_in_grid]]
, constant Params& params [[buffer(2)]]
, device type_2& y0_ [[buffer(0)]]
, device type_3 const& s0_ [[buffer(1)]]
, threadgroup type_4& lanes
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float sum = 0.0;
    uint k = {};
    uint v0_ = (workgroup_id.y * workgroup_count.x) + workgroup_id.x;
    uint _e10 = params.rows;
    uint row = metal::min(v0_, _e10 - 1u);
    k = local_index;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e34 = k;
            k = _e34 + 256u;
        }
        loop_init = false;
        uint _e17 = k;
        uint _e20 = params.chunks;
        if (_e17 < _e20) {
        } else {
            break;
        }
        {
            uint _e23 = k;
            uint _e26 = params.rows;
            uint v1_ = s0_[(_e23 * _e26) + row];
            float _e31 = sum;
            sum = _e31 + as_type<float>(v1_);
        }
    }
    float _e39 = sum;
    lanes.inner[local_index] = _e39;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (local_index < 128u) {
        float v2_ = lanes.inner[local_index + 128u];
        float _e47 = sum;
        sum = _e47 + v2_;
        float _e51 = sum;
        lanes.inner[local_index] = _e51;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (local_index < 64u) {
        float v3_ = lanes.inner[local_index + 64u];
        float _e59 = sum;
        sum = _e59 + v3_;
        float _e63 = sum;
        lanes.inner[local_index] = _e63;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (local_index < 32u) {
        float v4_ = lanes.inner[local_index + 32u];
        float _e71 = sum;
        sum = _e71 + v4_;
        float _e75 = sum;
        lanes.inner[local_index] = _e75;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (local_index < 16u) {
        float v5_ = lanes.inner[local_index + 16u];
        float _e83 = sum;
        sum = _e83 + v5_;
        float _e87 = sum;
        lanes.inner[local_index] = _e87;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (local_index < 8u) {
        float v6_ = lanes.inner[local_index + 8u];
        float _e95 = sum;
        sum = _e95 + v6_;
        float _e99 = sum;
        lanes.inner[local_index] = _e99;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (local_index < 4u) {
        float v7_ = lanes.inner[local_index + 4u];
        float _e107 = sum;
        sum = _e107 + v7_;
        float _e111 = sum;
        lanes.inner[local_index] = _e111;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (local_index < 2u) {
        float v8_ = lanes.inner[local_index + 2u];
        float _e119 = sum;
        sum = _e119 + v8_;
        float _e123 = sum;
        lanes.inner[local_index] = _e123;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (local_index < 1u) {
        float v9_ = lanes.inner[local_index + 1u];
        float _e131 = sum;
        sum = _e131 + v9_;
        float _e135 = sum;
        lanes.inner[local_index] = _e135;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    float v10_ = lanes.inner[local_index - local_index];
    sum = v10_;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    float v11_ = sum;
    uint _e145 = params.rows;
    if ((local_index == 0u) & (v0_ < _e145)) {
        y0_[row] = v11_;
        return;
    } else {
        return;
    }
}
