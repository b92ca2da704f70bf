struct Params {
    count: u32,
}
var<immediate> params: Params;
@group(0) @binding(0) var<storage, read> x0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> x1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y0: array<vec4<f32>>;

fn gf_exp(x: f32) -> f32 {
    let c = min(max(x, -104.0f), 89.0f);
    let n = i32(c * 1.442695f + 192.5f) - 192i;
    let k = f32(n);
    let r = (c - k * 0.693359375f) + k * 0.00021219444f;
    let q = (((0.0013813105f * r + 0.008369416f) * r + 0.041668456f) * r + 0.16666515f) * r + 0.49999994f;
    let y = (q * (r * r) + r) + 1.0f;
    let half = n >> 1u;
    let first = bitcast<f32>((half + 127i) << 23u);
    let second = bitcast<f32>(((n - half) + 127i) << 23u);
    let nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select((y * first) * second, x, nan);
}

fn gf_tanh(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let a = bitcast<f32>(bits & 0x7fffffffu);
    let z = a * a;
    let q = (((-0.0062740827f * z + 0.021071559f) * z + -0.05385228f) * z + 0.13332586f) * z + -0.33333316f;
    let small = a + a * (z * q);
    let large = 1.0f - 2.0f / (gf_exp(2.0f * min(a, 10.0f)) + 1.0f);
    let y = bitcast<u32>(select(large, small, a < 0.55f)) | (bits & 0x80000000u);
    return select(bitcast<f32>(y), x, (bits & 0x7fffffffu) > 0x7f800000u);
}

@compute @workgroup_size(256, 1, 1)
fn main(
    @builtin(local_invocation_index) local_index: u32,
    @builtin(num_workgroups) workgroup_count: vec3<u32>,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    let v0 = workgroup_count.x * 256u;
    for (var i = workgroup_id.x * 256u + local_index; i < params.count; i += v0) {
        let v1 = x0[i];
        let v2 = x1[i % 3u];
        let v3 = gf_tanh(v1.x);
        let v4 = gf_tanh(v1.y);
        let v5 = gf_tanh(v1.z);
        let v6 = gf_tanh(v1.w);
        y0[i] = vec4<f32>(v3, v4, v5, v6) + v2;
    }
}
