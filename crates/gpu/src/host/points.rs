//! Blocks of consecutive points.
//!
//! A block is up to [`LANES`] points consecutive in row-major order, cut into *runs* along the innermost axis. All runs but
//! the first start at the beginning of that axis.

/// Points evaluated together.
pub(super) const LANES: usize = 256;

/// A register: one word per lane.
pub(super) type Column = Box<[u32; LANES]>;

/// A register of zeros.
pub(super) fn column() -> Column {
    Box::new([0; LANES])
}

/// Part of a block along the innermost axis.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// First lane.
    pub(super) at: usize,
    /// Lanes.
    pub(super) len: usize,
    /// The axis whose step led here from the run before (anything for the first run).
    pub(super) level: usize,
}

/// The points of a block.
#[derive(Default)]
pub(super) struct Points {
    rank: usize,
    start: usize,
    count: usize,
    runs: Vec<Run>,
    coordinates: Vec<usize>,
    next: Vec<usize>,
}

impl Points {
    /// Space for domains of up to `rank` axes.
    pub(super) fn reserve(&mut self, rank: usize) {
        self.runs.reserve(LANES);
        self.coordinates.reserve(LANES * rank);
        self.next.reserve(rank);
    }

    /// Sets the block to `count` points from flat index `start`.
    pub(super) fn set(&mut self, start: usize, count: usize) {
        (self.start, self.count) = (start, count.min(LANES));
        self.runs.clear();
    }

    /// Cuts the block into runs over a domain of these extents.
    pub(super) fn find_runs(&mut self, extents: &[usize]) {
        let (start, count) = (self.start, self.count);
        self.rank = extents.len();
        self.runs.clear();
        self.coordinates.clear();
        self.next.clear();
        self.next.resize(extents.len(), 0);
        let mut rest = start;
        for (c, &e) in self.next.iter_mut().zip(extents).rev() {
            (*c, rest) = if rest < e { (rest, 0) } else { (rest % e, rest / e) };
        }
        let inner = extents.len() - 1;
        let (mut at, mut level) = (0, 0);
        while at < count {
            let len = (extents[inner] - self.next[inner]).min(count - at);
            self.runs.push(Run { at, len, level });
            self.coordinates.extend_from_slice(&self.next);
            at += len;
            self.next[inner] = 0;
            for a in (0..inner).rev() {
                (level, self.next[a]) = (a, self.next[a] + 1);
                if self.next[a] < extents[a] {
                    break;
                }
                self.next[a] = 0;
            }
        }
    }

    /// Flat index of the first point.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// How many points.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How many runs.
    pub(super) fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// The coordinates of the first point where all points are one run.
    pub(super) fn only_run(&self) -> Option<&[usize]> {
        (self.runs.len() == 1).then_some(self.coordinates.as_slice())
    }

    /// The runs with the coordinates of their first points.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Run, &[usize])> {
        self.runs.iter().copied().zip(self.coordinates.chunks_exact(self.rank.max(1)))
    }
}
