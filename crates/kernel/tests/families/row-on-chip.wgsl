struct Params {
    rows: u32,
    width: u32,
}
var<immediate> params: Params;
@group(0) @binding(0) var<storage, read> x0: array<f32>;
@group(0) @binding(1) var<storage, read_write> y0: array<f32>;
@group(0) @binding(2) var<storage, read_write> y1: array<i32>;
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
    let v4 = x0[row * params.width + v0];
    let v5 = bitcast<i32>(v0);
    let v6 = sum;
    let v7 = at;
    let v8 = v5 < v7;
    let v9 = (bitcast<u32>(v6) & 0x7fffffffu) > 2139095040u;
    let v10 = (((bitcast<u32>(v4) & 0x7fffffffu) > 2139095040u) & ((!v9) | v8)) | ((!v9) & ((v4 > v6) | ((v4 == v6) & v8)));
    sum = select(v6, v4, v10);
    at = select(v7, v5, v10);
    let v11 = v0 + 8u;
    let v12 = x0[row * params.width + v11];
    let v13 = bitcast<i32>(v11);
    let v14 = sum;
    let v15 = at;
    let v16 = v13 < v15;
    let v17 = (bitcast<u32>(v14) & 0x7fffffffu) > 2139095040u;
    let v18 = (((bitcast<u32>(v12) & 0x7fffffffu) > 2139095040u) & ((!v17) | v16)) | ((!v17) & ((v12 > v14) | ((v12 == v14) & v16)));
    sum = select(v14, v12, v18);
    at = select(v15, v13, v18);
    let v19 = v0 + 16u;
    let v20 = min(v19, params.width - 1u);
    let v21 = v19 < params.width;
    let v22 = x0[row * params.width + v20];
    let v23 = select(2147483647i, bitcast<i32>(v20), v21);
    let v24 = select(bitcast<f32>(0xff800000u), v22, v21);
    let v25 = sum;
    let v26 = at;
    let v27 = v23 < v26;
    let v28 = (bitcast<u32>(v25) & 0x7fffffffu) > 2139095040u;
    let v29 = (((bitcast<u32>(v24) & 0x7fffffffu) > 2139095040u) & ((!v28) | v27)) | ((!v28) & ((v24 > v25) | ((v24 == v25) & v27)));
    sum = select(v25, v24, v29);
    at = select(v26, v23, v29);
    lanes[v3] = sum;
    lanes_2[v3] = at;
    workgroupBarrier();
    if v0 < 4u {
        let v30 = v3 + 4u;
        let v31 = lanes[v30];
        let v32 = lanes_2[v30];
        let v33 = sum;
        let v34 = at;
        let v35 = v32 < v34;
        let v36 = (bitcast<u32>(v33) & 0x7fffffffu) > 2139095040u;
        let v37 = (((bitcast<u32>(v31) & 0x7fffffffu) > 2139095040u) & ((!v36) | v35)) | ((!v36) & ((v31 > v33) | ((v31 == v33) & v35)));
        sum = select(v33, v31, v37);
        at = select(v34, v32, v37);
        lanes[v3] = sum;
        lanes_2[v3] = at;
    }
    workgroupBarrier();
    if v0 < 2u {
        let v38 = v3 + 2u;
        let v39 = lanes[v38];
        let v40 = lanes_2[v38];
        let v41 = sum;
        let v42 = at;
        let v43 = v40 < v42;
        let v44 = (bitcast<u32>(v41) & 0x7fffffffu) > 2139095040u;
        let v45 = (((bitcast<u32>(v39) & 0x7fffffffu) > 2139095040u) & ((!v44) | v43)) | ((!v44) & ((v39 > v41) | ((v39 == v41) & v43)));
        sum = select(v41, v39, v45);
        at = select(v42, v40, v45);
        lanes[v3] = sum;
        lanes_2[v3] = at;
    }
    workgroupBarrier();
    if v0 < 1u {
        let v46 = v3 + 1u;
        let v47 = lanes[v46];
        let v48 = lanes_2[v46];
        let v49 = sum;
        let v50 = at;
        let v51 = v48 < v50;
        let v52 = (bitcast<u32>(v49) & 0x7fffffffu) > 2139095040u;
        let v53 = (((bitcast<u32>(v47) & 0x7fffffffu) > 2139095040u) & ((!v52) | v51)) | ((!v52) & ((v47 > v49) | ((v47 == v49) & v51)));
        sum = select(v49, v47, v53);
        at = select(v50, v48, v53);
        lanes[v3] = sum;
        lanes_2[v3] = at;
    }
    workgroupBarrier();
    let v54 = v3 - v0;
    let v55 = lanes[v54];
    let v56 = lanes_2[v54];
    sum = v55;
    at = v56;
    workgroupBarrier();
    let v57 = sum;
    let v58 = at;
    if (v0 == 0u) & (v2 < params.rows) {
        y0[row] = v57;
        y1[row] = v58;
    }
}
