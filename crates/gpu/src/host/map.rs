//! Maps and updates: independent points, stored block by block.

use super::code::{Code, Source};
use super::evaluate::{Need, Scratch};
use super::memory::View;
use super::points::LANES;
use super::workers::Workers;
use griffinfly_ir::index::Store;
use griffinfly_ir::loops::{Loop, Map, Update};
use griffinfly_ir::types::TensorType;

/// Points one task evaluates.
const TASK_POINTS: usize = 32 * LANES;

/// A compiled body over its domain with the memory it works on.
struct Part {
    code: Code,
    points: usize,
    operands: Vec<View>,
    results: Vec<View>,
}

/// A plan of a map or of an update (one part per segment).
pub(super) struct MapPlan {
    parts: Vec<Part>,
    /// Part, first point, points.
    tasks: Vec<(usize, usize, usize)>,
    nanoseconds: f64,
}

impl MapPlan {
    /// Plans a map.
    ///
    /// # Errors
    /// What does not compile, in words.
    pub(super) fn map(l: &Loop, m: &Map, views: &[View]) -> Result<MapPlan, String> {
        let source = Source {
            body: &m.body,
            operands: &l.operands,
            extents: &m.domain,
            stores: &m.stores,
            results: &l.results,
        };
        let (operands, results) = views.split_at(l.operands.len());
        Ok(MapPlan::of(vec![Part::new(&source, operands.to_vec(), results.to_vec())?]))
    }

    /// Plans an update.
    ///
    /// # Errors
    /// What does not compile, in words.
    pub(super) fn update(l: &Loop, u: &Update, views: &[View]) -> Result<MapPlan, String> {
        let (operands, results) = views.split_at(l.operands.len());
        let outputs = u.body.expr.outputs().len();
        let shared = u.segments.len() * u.lanes;
        let stores: Vec<Store> = (0..outputs).map(|o| Store::identity(o, 1)).collect();
        let mut parts = Vec::new();
        for (s, &n) in u.segments.iter().enumerate() {
            let lanes = || (s * u.lanes..(s + 1) * u.lanes).chain(shared..operands.len());
            let types: Vec<TensorType> = lanes().map(|lane| flat(&l.operands[lane])).collect();
            let stored: Vec<TensorType> = (0..outputs).map(|o| flat(&l.results[s * outputs + o])).collect();
            let source =
                Source { body: &u.body, operands: &types, extents: &[n], stores: &stores, results: &stored };
            let operands = lanes().map(|lane| operands[lane].clone()).collect();
            parts.push(Part::new(&source, operands, results[s * outputs..(s + 1) * outputs].to_vec())?);
        }
        Ok(MapPlan::of(parts))
    }

    fn of(parts: Vec<Part>) -> MapPlan {
        let mut tasks = Vec::new();
        for (i, p) in parts.iter().enumerate() {
            let starts = (0..p.points).step_by(TASK_POINTS);
            tasks.extend(starts.map(|s| (i, s, TASK_POINTS.min(p.points - s))));
        }
        let cost = |p: &Part| p.code.nanoseconds(p.points) * p.points as f64;
        let nanoseconds = parts.iter().map(cost).sum();
        MapPlan { parts, tasks, nanoseconds }
    }

    /// Scratch needed.
    pub(super) fn need(&self) -> Need {
        self.parts.iter().fold(Need::default(), |n, p| n.or(Need::of(&p.code)))
    }

    /// Executes it.
    pub(super) fn run(&self, workers: &Workers) {
        workers.run(self.tasks.len(), self.nanoseconds, &|t, scratch| {
            let (part, start, points) = self.tasks[t];
            self.parts[part].run(scratch, start, points);
        });
    }
}

impl Part {
    fn new(source: &Source<'_>, operands: Vec<View>, results: Vec<View>) -> Result<Part, String> {
        let order: Vec<usize> = (0..source.extents.len()).collect();
        let code = Code::new(source, &order, 0)?;
        Ok(Part { code, points: source.extents.iter().product(), operands, results })
    }

    fn run(&self, scratch: &mut Scratch, start: usize, points: usize) {
        self.code.begin(scratch);
        for at in (start..start + points).step_by(LANES) {
            self.code.evaluate(scratch, &self.operands, at, LANES.min(start + points - at));
            self.code.store(scratch, &self.results);
        }
    }
}

/// Updates see every tensor as one flat axis, and shared scalars as scalars.
fn flat(ty: &TensorType) -> TensorType {
    if ty.dims.is_empty() { ty.clone() } else { TensorType::new(ty.dtype, [ty.elements()]) }
}
