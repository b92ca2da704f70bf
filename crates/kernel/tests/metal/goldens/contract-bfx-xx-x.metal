// contract bf16x1 32x32x32/16x16 a1 b1
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
        metal::float4 v24_ = as_type<metal::float4>(metal::select((v23_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v23_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
        left_0_.inner[v22_ * 4u] = v24_.x;
        left_0_.inner[(v22_ * 4u) + 1u] = v24_.y;
        left_0_.inner[(v22_ * 4u) + 2u] = v24_.z;
        left_0_.inner[(v22_ * 4u) + 3u] = v24_.w;
        uint v25_ = (v2_ * 10u) + (v1_ >> 2u);
        metal::float4 _e212 = left_1_;
        metal::uint4 v26_ = as_type<metal::uint4>(_e212);
        metal::float4 v27_ = as_type<metal::float4>(metal::select((v26_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v26_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
        left_0_.inner[v25_ * 4u] = v27_.x;
        left_0_.inner[(v25_ * 4u) + 1u] = v27_.y;
        left_0_.inner[(v25_ * 4u) + 2u] = v27_.z;
        left_0_.inner[(v25_ * 4u) + 3u] = v27_.w;
        uint v28_ = (v3_ * 10u) + (v4_ >> 2u);
        metal::float4 _e261 = right_0_2_;
        metal::uint4 v29_ = as_type<metal::uint4>(_e261);
        metal::float4 v30_ = as_type<metal::float4>(metal::select((v29_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v29_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
        right_0_.inner[v28_ * 4u] = v30_.x;
        right_0_.inner[(v28_ * 4u) + 1u] = v30_.y;
        right_0_.inner[(v28_ * 4u) + 2u] = v30_.z;
        right_0_.inner[(v28_ * 4u) + 3u] = v30_.w;
        uint v31_ = (v5_ * 10u) + (v4_ >> 2u);
        metal::float4 _e310 = right_1_;
        metal::uint4 v32_ = as_type<metal::uint4>(_e310);
        metal::float4 v33_ = as_type<metal::float4>(metal::select((v32_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v32_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
        right_0_.inner[v31_ * 4u] = v33_.x;
        right_0_.inner[(v31_ * 4u) + 1u] = v33_.y;
        right_0_.inner[(v31_ * 4u) + 2u] = v33_.z;
        right_0_.inner[(v31_ * 4u) + 3u] = v33_.w;
        float v34_ = x1_[0];
        float v35_ = x1_[0];
        float v36_ = x1_[0];
        float v37_ = x1_[0];
        uint _e373 = params.k;
        left_0_2_ = metal::select(metal::float4(0.0), metal::float4(v34_, v35_, v36_, v37_), metal::bool4((32u + v0_) < _e373));
        float v38_ = x1_[0];
        float v39_ = x1_[0];
        float v40_ = x1_[0];
        float v41_ = x1_[0];
        uint _e396 = params.k;
        left_1_ = metal::select(metal::float4(0.0), metal::float4(v38_, v39_, v40_, v41_), metal::bool4((32u + v2_) < _e396));
        float v42_ = x0_[0];
        float v43_ = x0_[0];
        float v44_ = x0_[0];
        float v45_ = x0_[0];
        uint _e419 = params.k;
        right_0_2_ = metal::select(metal::float4(0.0), metal::float4(v42_, v43_, v44_, v45_), metal::bool4((32u + v3_) < _e419));
        float v46_ = x0_[0];
        float v47_ = x0_[0];
        float v48_ = x0_[0];
        float v49_ = x0_[0];
        uint _e442 = params.k;
        right_1_ = metal::select(metal::float4(0.0), metal::float4(v46_, v47_, v48_, v49_), metal::bool4((32u + v5_) < _e442));
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e816 = from_2_;
                from_2_ = _e816 + 32u;
            }
            loop_init = false;
            uint _e448 = from_2_;
            uint _e451 = params.k;
            if (_e448 < _e451) {
            } else {
                break;
            }
            {
                step = 0u;
                bool loop_init_1 = true;
                while(true) {
                    if (!loop_init_1) {
                        uint _e526 = step;
                        step = _e526 + 1u;
                    }
                    loop_init_1 = false;
                    uint _e455 = step;
                    if (_e455 < 32u) {
                    } else {
                        break;
                    }
                    {
                        uint _e459 = step;
                        float v50_ = left_0_.inner[(_e459 * 40u) + (subgroup_row + (lane >> 2u))];
                        uint _e469 = step;
                        float v51_ = left_0_.inner[(_e469 * 40u) + ((subgroup_row + 8u) + (lane >> 2u))];
                        uint v52_ = subgroup_column + ((lane & 3u) * 4u);
                        uint _e486 = step;
                        float v53_ = right_0_.inner[(_e486 * 40u) + v52_];
                        uint _e493 = step;
                        float v54_ = right_0_.inner[(_e493 * 40u) + (v52_ + 1u)];
                        uint _e502 = step;
                        float v55_ = right_0_.inner[(_e502 * 40u) + (v52_ + 2u)];
                        uint _e511 = step;
                        float v56_ = right_0_.inner[(_e511 * 40u) + (v52_ + 3u)];
                        metal::float4 v57_ = metal::float4(v53_, v54_, v55_, v56_);
                        metal::float4 _e521 = sum_0_0_;
                        sum_0_0_ = metal::fma(v57_, metal::float4(v50_), _e521);
                        metal::float4 _e524 = sum_1_0_;
                        sum_1_0_ = metal::fma(v57_, metal::float4(v51_), _e524);
                    }
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint v58_ = (v0_ * 10u) + (v1_ >> 2u);
                metal::float4 _e534 = left_0_2_;
                metal::uint4 v59_ = as_type<metal::uint4>(_e534);
                metal::float4 v60_ = as_type<metal::float4>(metal::select((v59_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v59_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
                left_0_.inner[v58_ * 4u] = v60_.x;
                left_0_.inner[(v58_ * 4u) + 1u] = v60_.y;
                left_0_.inner[(v58_ * 4u) + 2u] = v60_.z;
                left_0_.inner[(v58_ * 4u) + 3u] = v60_.w;
                uint v61_ = (v2_ * 10u) + (v1_ >> 2u);
                metal::float4 _e583 = left_1_;
                metal::uint4 v62_ = as_type<metal::uint4>(_e583);
                metal::float4 v63_ = as_type<metal::float4>(metal::select((v62_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v62_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
                left_0_.inner[v61_ * 4u] = v63_.x;
                left_0_.inner[(v61_ * 4u) + 1u] = v63_.y;
                left_0_.inner[(v61_ * 4u) + 2u] = v63_.z;
                left_0_.inner[(v61_ * 4u) + 3u] = v63_.w;
                uint v64_ = (v3_ * 10u) + (v4_ >> 2u);
                metal::float4 _e632 = right_0_2_;
                metal::uint4 v65_ = as_type<metal::uint4>(_e632);
                metal::float4 v66_ = as_type<metal::float4>(metal::select((v65_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v65_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
                right_0_.inner[v64_ * 4u] = v66_.x;
                right_0_.inner[(v64_ * 4u) + 1u] = v66_.y;
                right_0_.inner[(v64_ * 4u) + 2u] = v66_.z;
                right_0_.inner[(v64_ * 4u) + 3u] = v66_.w;
                uint v67_ = (v5_ * 10u) + (v4_ >> 2u);
                metal::float4 _e681 = right_1_;
                metal::uint4 v68_ = as_type<metal::uint4>(_e681);
                metal::float4 v69_ = as_type<metal::float4>(metal::select((v68_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v68_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
                right_0_.inner[v67_ * 4u] = v69_.x;
                right_0_.inner[(v67_ * 4u) + 1u] = v69_.y;
                right_0_.inner[(v67_ * 4u) + 2u] = v69_.z;
                right_0_.inner[(v67_ * 4u) + 3u] = v69_.w;
                uint _e725 = from_2_;
                uint v70_ = _e725 + 64u;
                float v71_ = x1_[0];
                float v72_ = x1_[0];
                float v73_ = x1_[0];
                float v74_ = x1_[0];
                uint _e746 = params.k;
                left_0_2_ = metal::select(metal::float4(0.0), metal::float4(v71_, v72_, v73_, v74_), metal::bool4((v70_ + v0_) < _e746));
                float v75_ = x1_[0];
                float v76_ = x1_[0];
                float v77_ = x1_[0];
                float v78_ = x1_[0];
                uint _e768 = params.k;
                left_1_ = metal::select(metal::float4(0.0), metal::float4(v75_, v76_, v77_, v78_), metal::bool4((v70_ + v2_) < _e768));
                float v79_ = x0_[0];
                float v80_ = x0_[0];
                float v81_ = x0_[0];
                float v82_ = x0_[0];
                uint _e790 = params.k;
                right_0_2_ = metal::select(metal::float4(0.0), metal::float4(v79_, v80_, v81_, v82_), metal::bool4((v70_ + v3_) < _e790));
                float v83_ = x0_[0];
                float v84_ = x0_[0];
                float v85_ = x0_[0];
                float v86_ = x0_[0];
                uint _e812 = params.k;
                right_1_ = metal::select(metal::float4(0.0), metal::float4(v83_, v84_, v85_, v86_), metal::bool4((v70_ + v5_) < _e812));
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint v87_ = (tile_n * 32u) + (subgroup_column + ((lane & 3u) * 4u));
        uint v88_ = v87_ + 1u;
        uint v89_ = v87_ + 2u;
        uint v90_ = v87_ + 3u;
        uint _e841 = params.m;
        if (((tile_m * 32u) + (subgroup_row + (lane >> 2u))) < _e841) {
            metal::float4 v91_ = sum_0_0_;
            uint _e846 = params.n;
            if (v87_ < _e846) {
                y0_[0] = v91_.x;
            }
            uint _e853 = params.n;
            if (v88_ < _e853) {
                y0_[0] = v91_.y;
            }
            uint _e860 = params.n;
            if (v89_ < _e860) {
                y0_[0] = v91_.z;
            }
            uint _e867 = params.n;
            if (v90_ < _e867) {
                y0_[0] = v91_.w;
            }
        }
        uint _e882 = params.m;
        if (((tile_m * 32u) + ((subgroup_row + 8u) + (lane >> 2u))) < _e882) {
            metal::float4 v92_ = sum_1_0_;
            uint _e887 = params.n;
            if (v87_ < _e887) {
                y0_[0] = v92_.x;
            }
            uint _e894 = params.n;
            if (v88_ < _e894) {
                y0_[0] = v92_.y;
            }
            uint _e901 = params.n;
            if (v89_ < _e901) {
                y0_[0] = v92_.z;
            }
            uint _e908 = params.n;
            if (v90_ < _e908) {
                y0_[0] = v92_.w;
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
