struct Params {
    rows: u32,
    width: u32,
    chunks: u32,
    chunk_width: u32,
}
var<immediate> params: Params;
@group(0) @binding(0) var<storage, read> x0: array<f32>;
@group(0) @binding(1) var<storage, read_write> s0: array<u32>;
var<workgroup> lanes: array<f32, 64>;
var<workgroup> lanes_2: array<i32, 64>;

@compute @workgroup_size(64, 1, 1)
fn main(
    @builtin(local_invocation_index) local_index: u32,
    @builtin(num_workgroups) workgroup_count: vec3<u32>,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    let v0 = workgroup_id.y * workgroup_count.x + workgroup_id.x;
    let v1 = v0 % params.chunks;
    let v2 = local_index & 7u;
    let v3 = local_index >> 3u;
    let v4 = v0 / params.chunks * 8u + v3;
    let row = min(v4, params.rows - 1u);
    let v5 = v1 * params.chunk_width;
    let v6 = min(v5 + params.chunk_width, params.width);
    let v7 = v3 * 8u + v2;
    var sum = bitcast<f32>(0xff800000u);
    var at = 2147483647i;
    for (var c = v5 + v2; c < v6; c += 8u) {
        let v8 = x0[row * params.width + c];
        let v9 = bitcast<i32>(c);
        let v10 = sum;
        let v11 = at;
        let v12 = v9 < v11;
        let v13 = (bitcast<u32>(v10) & 0x7fffffffu) > 2139095040u;
        let v14 = (((bitcast<u32>(v8) & 0x7fffffffu) > 2139095040u) & ((!v13) | v12)) | ((!v13) & ((v8 > v10) | ((v8 == v10) & v12)));
        sum = select(v10, v8, v14);
        at = select(v11, v9, v14);
    }
    lanes[v7] = sum;
    lanes_2[v7] = at;
    workgroupBarrier();
    if v2 < 4u {
        let v15 = v7 + 4u;
        let v16 = lanes[v15];
        let v17 = lanes_2[v15];
        let v18 = sum;
        let v19 = at;
        let v20 = v17 < v19;
        let v21 = (bitcast<u32>(v18) & 0x7fffffffu) > 2139095040u;
        let v22 = (((bitcast<u32>(v16) & 0x7fffffffu) > 2139095040u) & ((!v21) | v20)) | ((!v21) & ((v16 > v18) | ((v16 == v18) & v20)));
        sum = select(v18, v16, v22);
        at = select(v19, v17, v22);
        lanes[v7] = sum;
        lanes_2[v7] = at;
    }
    workgroupBarrier();
    if v2 < 2u {
        let v23 = v7 + 2u;
        let v24 = lanes[v23];
        let v25 = lanes_2[v23];
        let v26 = sum;
        let v27 = at;
        let v28 = v25 < v27;
        let v29 = (bitcast<u32>(v26) & 0x7fffffffu) > 2139095040u;
        let v30 = (((bitcast<u32>(v24) & 0x7fffffffu) > 2139095040u) & ((!v29) | v28)) | ((!v29) & ((v24 > v26) | ((v24 == v26) & v28)));
        sum = select(v26, v24, v30);
        at = select(v27, v25, v30);
        lanes[v7] = sum;
        lanes_2[v7] = at;
    }
    workgroupBarrier();
    if v2 < 1u {
        let v31 = v7 + 1u;
        let v32 = lanes[v31];
        let v33 = lanes_2[v31];
        let v34 = sum;
        let v35 = at;
        let v36 = v33 < v35;
        let v37 = (bitcast<u32>(v34) & 0x7fffffffu) > 2139095040u;
        let v38 = (((bitcast<u32>(v32) & 0x7fffffffu) > 2139095040u) & ((!v37) | v36)) | ((!v37) & ((v32 > v34) | ((v32 == v34) & v36)));
        sum = select(v34, v32, v38);
        at = select(v35, v33, v38);
        lanes[v7] = sum;
        lanes_2[v7] = at;
    }
    workgroupBarrier();
    let v39 = v7 - v2;
    let v40 = lanes[v39];
    let v41 = lanes_2[v39];
    sum = v40;
    at = v41;
    workgroupBarrier();
    let v42 = sum;
    let v43 = at;
    if (v2 == 0u) & (v4 < params.rows) {
        s0[v1 * params.rows + row] = bitcast<u32>(v42);
        s0[(params.chunks + v1) * params.rows + row] = bitcast<u32>(v43);
    }
}

// next dispatch

struct Params {
    rows: u32,
    width: u32,
    chunks: u32,
    chunk_width: u32,
}
var<immediate> params: Params;
@group(0) @binding(0) var<storage, read_write> y0: array<f32>;
@group(0) @binding(1) var<storage, read_write> y1: array<i32>;
@group(0) @binding(2) var<storage, read> s0: array<u32>;
var<workgroup> lanes: array<f32, 64>;
var<workgroup> lanes_2: array<i32, 64>;

@compute @workgroup_size(64, 1, 1)
fn main(
    @builtin(local_invocation_index) local_index: u32,
    @builtin(num_workgroups) workgroup_count: vec3<u32>,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    let v0 = local_index & 7u;
    let v1 = local_index >> 3u;
    let v2 = (workgroup_id.y * workgroup_count.x + workgroup_id.x) * 8u + v1;
    let row = min(v2, params.rows - 1u);
    let v3 = v1 * 8u + v0;
    var sum = bitcast<f32>(0xff800000u);
    var at = 2147483647i;
    for (var k = v0; k < params.chunks; k += 8u) {
        let v4 = s0[k * params.rows + row];
        let v5 = bitcast<f32>(v4);
        let v6 = s0[(params.chunks + k) * params.rows + row];
        let v7 = bitcast<i32>(v6);
        let v8 = sum;
        let v9 = at;
        let v10 = v7 < v9;
        let v11 = (bitcast<u32>(v8) & 0x7fffffffu) > 2139095040u;
        let v12 = (((bitcast<u32>(v5) & 0x7fffffffu) > 2139095040u) & ((!v11) | v10)) | ((!v11) & ((v5 > v8) | ((v5 == v8) & v10)));
        sum = select(v8, v5, v12);
        at = select(v9, v7, v12);
    }
    lanes[v3] = sum;
    lanes_2[v3] = at;
    workgroupBarrier();
    if v0 < 4u {
        let v13 = v3 + 4u;
        let v14 = lanes[v13];
        let v15 = lanes_2[v13];
        let v16 = sum;
        let v17 = at;
        let v18 = v15 < v17;
        let v19 = (bitcast<u32>(v16) & 0x7fffffffu) > 2139095040u;
        let v20 = (((bitcast<u32>(v14) & 0x7fffffffu) > 2139095040u) & ((!v19) | v18)) | ((!v19) & ((v14 > v16) | ((v14 == v16) & v18)));
        sum = select(v16, v14, v20);
        at = select(v17, v15, v20);
        lanes[v3] = sum;
        lanes_2[v3] = at;
    }
    workgroupBarrier();
    if v0 < 2u {
        let v21 = v3 + 2u;
        let v22 = lanes[v21];
        let v23 = lanes_2[v21];
        let v24 = sum;
        let v25 = at;
        let v26 = v23 < v25;
        let v27 = (bitcast<u32>(v24) & 0x7fffffffu) > 2139095040u;
        let v28 = (((bitcast<u32>(v22) & 0x7fffffffu) > 2139095040u) & ((!v27) | v26)) | ((!v27) & ((v22 > v24) | ((v22 == v24) & v26)));
        sum = select(v24, v22, v28);
        at = select(v25, v23, v28);
        lanes[v3] = sum;
        lanes_2[v3] = at;
    }
    workgroupBarrier();
    if v0 < 1u {
        let v29 = v3 + 1u;
        let v30 = lanes[v29];
        let v31 = lanes_2[v29];
        let v32 = sum;
        let v33 = at;
        let v34 = v31 < v33;
        let v35 = (bitcast<u32>(v32) & 0x7fffffffu) > 2139095040u;
        let v36 = (((bitcast<u32>(v30) & 0x7fffffffu) > 2139095040u) & ((!v35) | v34)) | ((!v35) & ((v30 > v32) | ((v30 == v32) & v34)));
        sum = select(v32, v30, v36);
        at = select(v33, v31, v36);
        lanes[v3] = sum;
        lanes_2[v3] = at;
    }
    workgroupBarrier();
    let v37 = v3 - v0;
    let v38 = lanes[v37];
    let v39 = lanes_2[v37];
    sum = v38;
    at = v39;
    workgroupBarrier();
    let v40 = sum;
    let v41 = at;
    if (v0 == 0u) & (v2 < params.rows) {
        y0[row] = v40;
        y1[row] = v41;
    }
}
