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
        uint left_first = tile_m * 32u;
        uint v0_ = local_index >> 3u;
        uint v1_ = (local_index & 7u) * 4u;
        uint _e53 = params.m;
        uint v2_ = metal::min(left_first + v0_, _e53 - 1u);
        uint v3_ = (local_index + 128u) >> 3u;
        uint _e64 = params.m;
        uint v4_ = metal::min(left_first + v3_, _e64 - 1u);
        uint v5_ = local_index >> 3u;
        uint v6_ = (local_index & 7u) * 4u;
        uint v7_ = (local_index + 128u) >> 3u;
        uint _e95 = params.k;
        float v8_ = x1_[(v2_ * 2u) + metal::min(v1_, _e95 - 1u)];
        uint v9_ = v1_ + 1u;
        uint _e109 = params.k;
        float v10_ = x1_[(v2_ * 2u) + metal::min(v9_, _e109 - 1u)];
        uint v11_ = v1_ + 2u;
        uint _e123 = params.k;
        float v12_ = x1_[(v2_ * 2u) + metal::min(v11_, _e123 - 1u)];
        uint v13_ = v1_ + 3u;
        uint _e137 = params.k;
        float v14_ = x1_[(v2_ * 2u) + metal::min(v13_, _e137 - 1u)];
        uint _e147 = params.k;
        uint _e153 = params.k;
        uint _e159 = params.k;
        uint _e165 = params.k;
        left_0_2_ = metal::float4((v1_ < _e147) ? v8_ : 0.0, (v9_ < _e153) ? v10_ : 0.0, (v11_ < _e159) ? v12_ : 0.0, (v13_ < _e165) ? v14_ : 0.0);
        uint _e174 = params.k;
        float v15_ = x1_[(v4_ * 2u) + metal::min(v1_, _e174 - 1u)];
        uint v16_ = v1_ + 1u;
        uint _e188 = params.k;
        float v17_ = x1_[(v4_ * 2u) + metal::min(v16_, _e188 - 1u)];
        uint v18_ = v1_ + 2u;
        uint _e202 = params.k;
        float v19_ = x1_[(v4_ * 2u) + metal::min(v18_, _e202 - 1u)];
        uint v20_ = v1_ + 3u;
        uint _e216 = params.k;
        float v21_ = x1_[(v4_ * 2u) + metal::min(v20_, _e216 - 1u)];
        uint _e226 = params.k;
        uint _e232 = params.k;
        uint _e238 = params.k;
        uint _e244 = params.k;
        left_1_ = metal::float4((v1_ < _e226) ? v15_ : 0.0, (v16_ < _e232) ? v17_ : 0.0, (v18_ < _e238) ? v19_ : 0.0, (v20_ < _e244) ? v21_ : 0.0);
        uint _e257 = params.k;
        right_0_2_ = metal::select(metal::float4(0.0), metal::float4(0.0, 0.0, 0.0, 0.0), metal::bool4(v5_ < _e257));
        uint _e270 = params.k;
        right_1_ = metal::select(metal::float4(0.0), metal::float4(0.0, 0.0, 0.0, 0.0), metal::bool4(v7_ < _e270));
        uint v22_ = (v0_ * 10u) + (v1_ >> 2u);
        metal::float4 _e279 = left_0_2_;
        metal::uint4 v23_ = as_type<metal::uint4>(_e279);
        metal::float4 v24_ = as_type<metal::float4>(metal::select((v23_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v23_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
        left_0_.inner[v22_ * 4u] = v24_.x;
        left_0_.inner[(v22_ * 4u) + 1u] = v24_.y;
        left_0_.inner[(v22_ * 4u) + 2u] = v24_.z;
        left_0_.inner[(v22_ * 4u) + 3u] = v24_.w;
        uint v25_ = (v3_ * 10u) + (v1_ >> 2u);
        metal::float4 _e328 = left_1_;
        metal::uint4 v26_ = as_type<metal::uint4>(_e328);
        metal::float4 v27_ = as_type<metal::float4>(metal::select((v26_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v26_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
        left_0_.inner[v25_ * 4u] = v27_.x;
        left_0_.inner[(v25_ * 4u) + 1u] = v27_.y;
        left_0_.inner[(v25_ * 4u) + 2u] = v27_.z;
        left_0_.inner[(v25_ * 4u) + 3u] = v27_.w;
        uint v28_ = (v5_ * 10u) + (v6_ >> 2u);
        metal::float4 _e377 = right_0_2_;
        metal::uint4 v29_ = as_type<metal::uint4>(_e377);
        metal::float4 v30_ = as_type<metal::float4>(metal::select((v29_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v29_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
        right_0_.inner[v28_ * 4u] = v30_.x;
        right_0_.inner[(v28_ * 4u) + 1u] = v30_.y;
        right_0_.inner[(v28_ * 4u) + 2u] = v30_.z;
        right_0_.inner[(v28_ * 4u) + 3u] = v30_.w;
        uint v31_ = (v7_ * 10u) + (v6_ >> 2u);
        metal::float4 _e426 = right_1_;
        metal::uint4 v32_ = as_type<metal::uint4>(_e426);
        metal::float4 v33_ = as_type<metal::float4>(metal::select((v32_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v32_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
        right_0_.inner[v31_ * 4u] = v33_.x;
        right_0_.inner[(v31_ * 4u) + 1u] = v33_.y;
        right_0_.inner[(v31_ * 4u) + 2u] = v33_.z;
        right_0_.inner[(v31_ * 4u) + 3u] = v33_.w;
        uint v34_ = 32u + v1_;
        uint _e477 = params.k;
        float v35_ = x1_[(v2_ * 2u) + metal::min(v34_, _e477 - 1u)];
        uint v36_ = 32u + (v1_ + 1u);
        uint _e493 = params.k;
        float v37_ = x1_[(v2_ * 2u) + metal::min(v36_, _e493 - 1u)];
        uint v38_ = 32u + (v1_ + 2u);
        uint _e509 = params.k;
        float v39_ = x1_[(v2_ * 2u) + metal::min(v38_, _e509 - 1u)];
        uint v40_ = 32u + (v1_ + 3u);
        uint _e525 = params.k;
        float v41_ = x1_[(v2_ * 2u) + metal::min(v40_, _e525 - 1u)];
        uint _e535 = params.k;
        uint _e541 = params.k;
        uint _e547 = params.k;
        uint _e553 = params.k;
        left_0_2_ = metal::float4((v34_ < _e535) ? v35_ : 0.0, (v36_ < _e541) ? v37_ : 0.0, (v38_ < _e547) ? v39_ : 0.0, (v40_ < _e553) ? v41_ : 0.0);
        uint v42_ = 32u + v1_;
        uint _e564 = params.k;
        float v43_ = x1_[(v4_ * 2u) + metal::min(v42_, _e564 - 1u)];
        uint v44_ = 32u + (v1_ + 1u);
        uint _e580 = params.k;
        float v45_ = x1_[(v4_ * 2u) + metal::min(v44_, _e580 - 1u)];
        uint v46_ = 32u + (v1_ + 2u);
        uint _e596 = params.k;
        float v47_ = x1_[(v4_ * 2u) + metal::min(v46_, _e596 - 1u)];
        uint v48_ = 32u + (v1_ + 3u);
        uint _e612 = params.k;
        float v49_ = x1_[(v4_ * 2u) + metal::min(v48_, _e612 - 1u)];
        uint _e622 = params.k;
        uint _e628 = params.k;
        uint _e634 = params.k;
        uint _e640 = params.k;
        left_1_ = metal::float4((v42_ < _e622) ? v43_ : 0.0, (v44_ < _e628) ? v45_ : 0.0, (v46_ < _e634) ? v47_ : 0.0, (v48_ < _e640) ? v49_ : 0.0);
        uint _e655 = params.k;
        right_0_2_ = metal::select(metal::float4(0.0), metal::float4(0.0, 0.0, 0.0, 0.0), metal::bool4((32u + v5_) < _e655));
        uint _e670 = params.k;
        right_1_ = metal::select(metal::float4(0.0), metal::float4(0.0, 0.0, 0.0, 0.0), metal::bool4((32u + v7_) < _e670));
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e1150 = from_2_;
                from_2_ = _e1150 + 32u;
            }
            loop_init = false;
            uint _e676 = from_2_;
            uint _e679 = params.k;
            if (_e676 < _e679) {
            } else {
                break;
            }
            {
                step = 0u;
                bool loop_init_1 = true;
                while(true) {
                    if (!loop_init_1) {
                        uint _e754 = step;
                        step = _e754 + 1u;
                    }
                    loop_init_1 = false;
                    uint _e683 = step;
                    if (_e683 < 32u) {
                    } else {
                        break;
                    }
                    {
                        uint _e692 = step;
                        float v50_ = left_0_.inner[((subgroup_row + (lane >> 2u)) * 40u) + _e692];
                        uint _e704 = step;
                        float v51_ = left_0_.inner[(((subgroup_row + 8u) + (lane >> 2u)) * 40u) + _e704];
                        uint v52_ = subgroup_column + ((lane & 3u) * 4u);
                        uint _e714 = step;
                        float v53_ = right_0_.inner[(_e714 * 40u) + v52_];
                        uint _e721 = step;
                        float v54_ = right_0_.inner[(_e721 * 40u) + (v52_ + 1u)];
                        uint _e730 = step;
                        float v55_ = right_0_.inner[(_e730 * 40u) + (v52_ + 2u)];
                        uint _e739 = step;
                        float v56_ = right_0_.inner[(_e739 * 40u) + (v52_ + 3u)];
                        metal::float4 v57_ = metal::float4(v53_, v54_, v55_, v56_);
                        metal::float4 _e749 = sum_0_0_;
                        sum_0_0_ = metal::fma(v57_, metal::float4(v50_), _e749);
                        metal::float4 _e752 = sum_1_0_;
                        sum_1_0_ = metal::fma(v57_, metal::float4(v51_), _e752);
                    }
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint v58_ = (v0_ * 10u) + (v1_ >> 2u);
                metal::float4 _e762 = left_0_2_;
                metal::uint4 v59_ = as_type<metal::uint4>(_e762);
                metal::float4 v60_ = as_type<metal::float4>(metal::select((v59_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v59_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
                left_0_.inner[v58_ * 4u] = v60_.x;
                left_0_.inner[(v58_ * 4u) + 1u] = v60_.y;
                left_0_.inner[(v58_ * 4u) + 2u] = v60_.z;
                left_0_.inner[(v58_ * 4u) + 3u] = v60_.w;
                uint v61_ = (v3_ * 10u) + (v1_ >> 2u);
                metal::float4 _e811 = left_1_;
                metal::uint4 v62_ = as_type<metal::uint4>(_e811);
                metal::float4 v63_ = as_type<metal::float4>(metal::select((v62_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v62_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
                left_0_.inner[v61_ * 4u] = v63_.x;
                left_0_.inner[(v61_ * 4u) + 1u] = v63_.y;
                left_0_.inner[(v61_ * 4u) + 2u] = v63_.z;
                left_0_.inner[(v61_ * 4u) + 3u] = v63_.w;
                uint v64_ = (v5_ * 10u) + (v6_ >> 2u);
                metal::float4 _e860 = right_0_2_;
                metal::uint4 v65_ = as_type<metal::uint4>(_e860);
                metal::float4 v66_ = as_type<metal::float4>(metal::select((v65_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v65_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
                right_0_.inner[v64_ * 4u] = v66_.x;
                right_0_.inner[(v64_ * 4u) + 1u] = v66_.y;
                right_0_.inner[(v64_ * 4u) + 2u] = v66_.z;
                right_0_.inner[(v64_ * 4u) + 3u] = v66_.w;
                uint v67_ = (v7_ * 10u) + (v6_ >> 2u);
                metal::float4 _e909 = right_1_;
                metal::uint4 v68_ = as_type<metal::uint4>(_e909);
                metal::float4 v69_ = as_type<metal::float4>(metal::select((v68_ + metal::uint4(32768u)) & metal::uint4(4294901760u), metal::uint4(2143289344u), (v68_ & metal::uint4(2147483647u)) > metal::uint4(2139095040u)));
                right_0_.inner[v67_ * 4u] = v69_.x;
                right_0_.inner[(v67_ * 4u) + 1u] = v69_.y;
                right_0_.inner[(v67_ * 4u) + 2u] = v69_.z;
                right_0_.inner[(v67_ * 4u) + 3u] = v69_.w;
                uint _e953 = from_2_;
                uint v70_ = _e953 + 64u;
                uint v71_ = v70_ + v1_;
                uint _e962 = params.k;
                float v72_ = x1_[(v2_ * 2u) + metal::min(v71_, _e962 - 1u)];
                uint v73_ = v70_ + (v1_ + 1u);
                uint _e977 = params.k;
                float v74_ = x1_[(v2_ * 2u) + metal::min(v73_, _e977 - 1u)];
                uint v75_ = v70_ + (v1_ + 2u);
                uint _e992 = params.k;
                float v76_ = x1_[(v2_ * 2u) + metal::min(v75_, _e992 - 1u)];
                uint v77_ = v70_ + (v1_ + 3u);
                uint _e1007 = params.k;
                float v78_ = x1_[(v2_ * 2u) + metal::min(v77_, _e1007 - 1u)];
                uint _e1017 = params.k;
                uint _e1023 = params.k;
                uint _e1029 = params.k;
                uint _e1035 = params.k;
                left_0_2_ = metal::float4((v71_ < _e1017) ? v72_ : 0.0, (v73_ < _e1023) ? v74_ : 0.0, (v75_ < _e1029) ? v76_ : 0.0, (v77_ < _e1035) ? v78_ : 0.0);
                uint v79_ = v70_ + v1_;
                uint _e1045 = params.k;
                float v80_ = x1_[(v4_ * 2u) + metal::min(v79_, _e1045 - 1u)];
                uint v81_ = v70_ + (v1_ + 1u);
                uint _e1060 = params.k;
                float v82_ = x1_[(v4_ * 2u) + metal::min(v81_, _e1060 - 1u)];
                uint v83_ = v70_ + (v1_ + 2u);
                uint _e1075 = params.k;
                float v84_ = x1_[(v4_ * 2u) + metal::min(v83_, _e1075 - 1u)];
                uint v85_ = v70_ + (v1_ + 3u);
                uint _e1090 = params.k;
                float v86_ = x1_[(v4_ * 2u) + metal::min(v85_, _e1090 - 1u)];
                uint _e1100 = params.k;
                uint _e1106 = params.k;
                uint _e1112 = params.k;
                uint _e1118 = params.k;
                left_1_ = metal::float4((v79_ < _e1100) ? v80_ : 0.0, (v81_ < _e1106) ? v82_ : 0.0, (v83_ < _e1112) ? v84_ : 0.0, (v85_ < _e1118) ? v86_ : 0.0);
                uint _e1132 = params.k;
                right_0_2_ = metal::select(metal::float4(0.0), metal::float4(0.0, 0.0, 0.0, 0.0), metal::bool4((v70_ + v5_) < _e1132));
                uint _e1146 = params.k;
                right_1_ = metal::select(metal::float4(0.0), metal::float4(0.0, 0.0, 0.0, 0.0), metal::bool4((v70_ + v7_) < _e1146));
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
        }
        uint v87_ = (tile_m * 32u) + (subgroup_row + (lane >> 2u));
        uint v88_ = (tile_m * 32u) + ((subgroup_row + 8u) + (lane >> 2u));
        uint v89_ = (tile_n * 32u) + (subgroup_column + ((lane & 3u) * 4u));
        uint v90_ = v89_ + 1u;
        uint v91_ = v89_ + 2u;
        uint v92_ = v89_ + 3u;
        uint _e1183 = params.m;
        if (v87_ < _e1183) {
            metal::float4 v93_ = sum_0_0_;
            uint _e1188 = params.n;
            if (v89_ < _e1188) {
                y0_[(v87_ * 2u) + v89_] = v93_.x;
            }
            uint _e1198 = params.n;
            if (v90_ < _e1198) {
                y0_[(v87_ * 2u) + v90_] = v93_.y;
            }
            uint _e1208 = params.n;
            if (v91_ < _e1208) {
                y0_[(v87_ * 2u) + v91_] = v93_.z;
            }
            uint _e1218 = params.n;
            if (v92_ < _e1218) {
                y0_[(v87_ * 2u) + v92_] = v93_.w;
            }
        }
        uint _e1228 = params.m;
        if (v88_ < _e1228) {
            metal::float4 v94_ = sum_1_0_;
            uint _e1233 = params.n;
            if (v89_ < _e1233) {
                y0_[(v88_ * 2u) + v89_] = v94_.x;
            }
            uint _e1243 = params.n;
            if (v90_ < _e1243) {
                y0_[(v88_ * 2u) + v90_] = v94_.y;
            }
            uint _e1253 = params.n;
            if (v91_ < _e1253) {
                y0_[(v88_ * 2u) + v91_] = v94_.z;
            }
            uint _e1263 = params.n;
            if (v92_ < _e1263) {
                y0_[(v88_ * 2u) + v92_] = v94_.w;
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
