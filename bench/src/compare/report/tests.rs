//! The page of made-up records as a golden text, the chart, the metric against values worked out by hand, refusals, and that
//! `docs/results` is what the kept records say. `GRIFFINFLY_BLESS=1` writes the golden files anew.

use super::made_up::{
    A, B, MICRO, book, cell, fast, judged, micro, of, other_card, plan, run, text, unet, whisper,
};
use super::*;
use crate::compare::results::Results;
use crate::record::Run;
use crate::workload::Name;
use std::path::Path;

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results/h200").join(name)
}

#[test]
fn the_page_is_that_of_the_records() {
    let workloads = ["smollm2", "smolvla", "unet", "resnet50", "whisper"];
    let file = |workload: &str, kind: &str| kept(&format!("{workload}{kind}.json"));
    let files: Vec<PathBuf> =
        ["", "-fast", "-webgpu"].iter().flat_map(|kind| workloads.map(|w| file(w, kind))).collect();
    let mut all: Vec<PathBuf> = std::fs::read_dir(kept("")).unwrap().flatten().map(|e| e.path()).collect();
    all.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    assert_eq!(all.len(), files.len(), "records that the page does not show");
    let book = Book::read(&texts(&files).unwrap(), &[], &[]).unwrap();
    let made = page(&book);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results");
    for (name, text) in [("README.md", made.text), (CHART, made.chart.unwrap())] {
        let was = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(text == was, "{name} is not that of the records: see the command in bench/README.md");
    }
}

#[test]
fn golden_page_and_chart() {
    let page = page(&book());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report");
    for (name, text) in [("page.txt", page.text), (CHART, page.chart.unwrap())] {
        let path = folder.join(name);
        if std::env::var_os("GRIFFINFLY_BLESS").is_some_and(|value| value == "1") {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, golden, "{name}: if this is meant: cargo xtask bless");
    }
}

#[test]
fn sections_without_data_are_left_out() {
    let text = page(&of(&[text("unet.json", &unet())]).unwrap()).text;
    for absent in ["fast\n", "| fast |", "planned for", "Micro", "Disagreements", "Card <B"] {
        assert!(!text.contains(absent), "{absent}");
    }
    assert!(text.contains("## Time: train, strict\n") && text.contains("the metric equals the efficiency"));
    let nothing = of(&[]).unwrap();
    let page = page(&nothing);
    assert!(page.chart.is_none() && page.text == INTRODUCTION);
}

/// The names of all tags that are opened, after checking that they are closed in order.
fn tags(svg: &str) -> Vec<&str> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "unescaped: {text}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            let name = tag.split(' ').next().unwrap();
            all.push(name);
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

#[test]
fn the_chart_has_a_bar_per_cell_and_says_everything_in_words() {
    let svg = page(&book()).chart.unwrap();
    let tags = tags(&svg);
    let bars = |class: &str| svg.matches(&format!("<rect class=\"{class}\"")).count();
    // Card A: six cells less one without a reference; card B: three less one that failed; fast: the three of the record.
    assert_eq!((bars("strict"), bars("fast"), tags.iter().filter(|t| **t == "rect").count()), (7, 3, 10));
    assert!(svg.starts_with("<svg ") && svg.contains(r#"role="img" aria-labelledby="title description""#));
    assert!(svg.contains("<title id=\"title\">") && svg.contains("<desc id=\"description\">"));
    assert!(svg.contains(" unet inference, strict: 1.25.") && svg.contains(" unet inference, fast: 2.00."));
    assert!(
        svg.contains("whisper train, strict: no valid reference")
            && svg.contains("prefers-color-scheme:dark")
    );
    assert!(
        svg.contains("Card &lt;B &amp; C&gt; (vulkan)") && !svg.contains("<script") && !svg.contains("url(")
    );
    assert!(!svg.replace("http://www.w3.org/2000/svg", "").contains("http"));
}

#[test]
fn ratios_on_one_side_of_one_have_a_chart_too() {
    for (ours, tick) in [(4.0, ">0.05<"), (8000.0, ">100<"), (80.0, ">1<")] {
        let mut results = unet();
        results.ours[0].run.cells = vec![cell(Name::UNet, Phase::Inference, "program", ours)];
        results.ours[0].verdicts.truncate(1);
        let svg = page(&of(&[text("a.json", &results)]).unwrap()).chart.unwrap();
        tags(&svg);
        assert!(svg.contains(tick) && !svg.contains("NaN"), "{svg}");
    }
}

#[test]
fn the_metric_is_a_harmonic_mean() {
    assert_eq!(portability::metric(&[]), None);
    assert_eq!(portability::metric(&[0.25]), Some(0.25));
    // 3 / (1 / 1 + 1 / 0.5 + 1 / 0.25) = 3 / 7.
    assert!((portability::metric(&[1.0, 0.5, 0.25]).unwrap() - 3.0 / 7.0).abs() < 1e-15);
    assert_eq!(portability::metric(&[1.0, 0.0, 0.5]), Some(0.0), "a platform is not supported");
}

#[test]
fn efficiencies_are_by_the_fastest_known_implementation() {
    let book = book();
    let [a, b] = [A, B].map(|name| book.platforms.iter().find(|p| p.name == name).unwrap());
    let [a, b] = [a, b].map(|platform| platform.comparison(Precision::Strict).unwrap());
    let efficiency = |c, workload, phase| portability::efficiency(c, workload, phase);
    // Theirs 80 by ours 100; ours 120 is faster than theirs, 240: 2 / (1 / 0.8 + 1 / 1) = 0.889.
    assert!((efficiency(&a, Name::UNet, Phase::Inference) - 0.8).abs() < 1e-12);
    assert_eq!(efficiency(&b, Name::UNet, Phase::Inference), 1.0);
    // Ours failed; ours is the only valid one; nobody measured it.
    assert_eq!(efficiency(&b, Name::UNet, Phase::Latency), 0.0);
    assert_eq!(efficiency(&a, Name::Whisper, Phase::Train), 1.0);
    assert_eq!(efficiency(&b, Name::Whisper, Phase::Train), 0.0);
    let page = page(&book).text;
    for row in [
        "| unet | inference | 0.80 | 1.00 | 0.89 |",
        "| unet | latency | 1.00 | 0.00 (ours is not valid) | 0.00 |",
        "| whisper | train | 1.00 (only ours is valid) | 0.00 (not measured) | 0.00 |",
    ] {
        assert!(page.contains(row), "{row}");
    }
}

#[test]
fn a_fast_program_of_ours_comes_before_a_strict_one() {
    let ours =
        run("griffinfly", Precision::Fast, A, vec![cell(Name::UNet, Phase::Inference, "program", 25.0)]);
    let theirs = judged(fast(), 1e-6);
    let files =
        [text("s.json", &unet()), text("f.json", &Results::new(judged(ours, 1e-3), vec![theirs], None))];
    // Its errors are those of the fast contract: in this file the strict limit was applied, so it does not count.
    let book = of(&files).unwrap();
    let comparison = book.platforms[0].comparison(Precision::Fast).unwrap();
    assert_eq!(comparison.ours.len(), 3);
    assert_eq!(comparison.ratio(Name::UNet, Phase::Inference), Err(crate::compare::ratio::Gap::OursInvalid));
    assert_eq!(comparison.ratio(Name::UNet, Phase::Train), Ok(2.0));
}

fn refused(results: Result<Book, BenchError>) -> String {
    results.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn cells_that_cannot_be_are_named() {
    let with = |change: fn(&mut crate::record::Cell)| {
        let mut results = unet();
        change(&mut results.theirs[0].run.cells[4]);
        text("bad.json", &results)
    };
    for (file, reason) in [
        (with(|c| c.samples_us[1] = 0.0), "a sample takes 0 us"),
        (with(|c| c.samples_us[1] = -3.0), "a sample takes -3 us"),
        (with(|c| c.host_us[0] = -1.0), "a sample takes -1 us of the host"),
        (with(|c| c.host_us.truncate(1)), "3 samples have 1 times of the host"),
        (with(|c| c.preparation_s = Some(0.0)), "preparation takes 0 s"),
        (with(|c| c.preparation_again_s = Some(-1.0)), "preparation takes -1 s"),
    ] {
        assert_eq!(refused(of(&[file])), format!("bad.json: unet latency graph: {reason}"));
    }
    let said = refused(of(&[with(|c| c.samples_us[1] = f64::NAN)]));
    assert!(said.starts_with("bad.json is no record") && said.ends_with("(in unet latency graph)"), "{said}");
}

#[test]
fn a_cell_counts_once() {
    let twice = [text("a.json", &unet()), text("b.json", &unet())];
    assert_eq!(refused(of(&twice)), "b.json: unet inference program: stands in a.json already");
    let mut results = unet();
    results.theirs[0].run.cells[4].phase = Phase::Inference;
    assert_eq!(
        refused(of(&[text("a.json", &results)])),
        "a.json: unet inference graph: stands in a.json already"
    );
    let fast = [text("a.json", &unet()), text("b.json", &fast()), text("c.json", &fast())];
    assert_eq!(refused(of(&fast)), "c.json: unet inference graph: stands in b.json already");
}

#[test]
fn records_that_do_not_go_together_are_refused() {
    let with = |change: fn(&mut Results)| {
        let mut results = whisper();
        change(&mut results);
        [text("a.json", &unet()), text("b.json", &results)]
    };
    for (files, part) in [
        (
            with(|r| r.ours[0].run.revision = Some("f".into())),
            "our revision is f, in a.json it is 0123456789abcdef",
        ),
        (with(|r| r.ours[0].run.revision = None), "our revision is unknown"),
        (
            with(|r| r.ours[0].run.device.driver = "driver 2".into()),
            "the driver is driver 2, in a.json it is driver 1",
        ),
        (
            with(|r| r.ours[0].run.size = crate::workload::Size::Small),
            "the size is small, in a.json it is full",
        ),
        (with(|r| r.theirs[0].run.device.name = "Card Z".into()), "the reference's device is Card Z"),
        (with(|r| r.theirs[1].run.precision = Precision::Fast), "mixes strict and fast"),
        (with(|r| r.theirs[0].run.format = 2), "is of format 2"),
        (with(|r| r.ours.clear()), "holds no results of ours"),
        (with(|r| r.ours[0].verdicts.truncate(1)), "has 1 verdicts on 3 cells"),
        (with(|r| r.ours[0].run.precision = Precision::Fast), "compares ours, fast, with theirs, strict"),
    ] {
        let said = refused(of(&files));
        assert!(said.starts_with("b.json: ") && said.contains(part), "{said}");
    }
    let plan = Run { revision: Some("f".into()), ..plan() };
    let said = refused(Book::read(&[text("a.json", &unet())], &[text("p.json", &plan)], &[]));
    assert_eq!(said, "p.json: our revision is f, in a.json it is 0123456789abcdef");
}

#[test]
fn what_is_no_comparison_is_refused() {
    let said = refused(of(&texts(&[kept("backends/vulkan.json")]).unwrap()));
    assert!(said.contains("vulkan.json: is a record of griffinfly strict without verdicts"), "{said}");
    let said = refused(of(&[text("f.json", &fast()), text("other.json", &other_card())]));
    assert_eq!(said, "f.json: is of Card A, of which there is no comparison");
    assert!(refused(of(&[micro("[]")])).starts_with("micro.json is no record of results: "));
    assert!(texts(&[kept("none.json")]).is_err());
}

#[test]
fn rows_of_micro_benchmarks_are_checked() {
    for (from, to, said) in [
        ("\"ours_us\": 8", "\"ours_us\": -8", "micro.json: gemm 64x576x1536 forward strict: ours_us is -8"),
        (
            "\"reference_us\": 4",
            "\"reference_us\": 0",
            "micro.json: gemm 64x576x1536 forward strict: reference_us is 0",
        ),
        (
            "64x576x1536",
            "1024x1024x1024",
            "micro.json: gemm 1024x1024x1024 forward strict: stands in micro.json already",
        ),
        ("\"fast\"", "\"f64\"", "f64 is no contract of ours"),
        ("FlashAttention-2", " ", "the reference is empty"),
        ("\"ours_us\": 7", "\"ours_us\": null", "4x4x3x3 forward strict: nobody has a time"),
        (", \"reference_us\": 9", "", "5x5x3x3 forward strict: a reference and its time go together"),
        ("\"ours_us\": 8", "\"ours_us\": NaN", "(in gemm 64x576x1536 forward)"),
        ("\"ours_us\": 8", "\"our_us\": 8", "unknown field `our_us`"),
        ("\"attention\"", "\"pooling\"", "unknown variant `pooling`"),
        ("\"format\": 1", "\"format\": 3", "micro.json: is of format 3, this program reads 1"),
        ("0123456789abcdef", "f", "micro.json: our revision is f, in a.json it is 0123456789abcdef"),
    ] {
        assert!(MICRO.contains(from), "{from}");
        let file = micro(&MICRO.replace(from, to));
        let error = refused(Book::read(&[text("a.json", &unet())], &[], &[file]));
        assert!(error.starts_with("micro.json") && error.contains(said), "{error}");
    }
}
