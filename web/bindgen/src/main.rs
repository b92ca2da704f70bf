//! `griffinfly-web-bindgen IN.wasm DIR`: writes `DIR/NAME.js` and `DIR/NAME_bg.wasm`, modules of a browser.

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(output), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        eprintln!("usage: griffinfly-web-bindgen IN.wasm DIR");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(&input).typescript(false).omit_default_module_path(false).remove_name_section(true).remove_producers_section(true);
    match bindgen.web(true).and_then(|bindgen| bindgen.generate(&output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{input}: {error:?}");
            ExitCode::FAILURE
        }
    }
}
