//! How the output of a contraction is cut into tasks: a pure function of its sizes.

use std::ops::Range;

/// Elements of a tile at most, so that a tile and its panels stay in the caches.
const TILE_ELEMENTS: usize = 1 << 16;

/// Tasks wanted when there is enough work.
const TASKS: usize = 8;

/// Multiply-adds that are worth a task.
const TASK_WORK: usize = 1 << 20;

/// Summed elements of a panel.
const PANEL_K: usize = 1024;

/// Partial products kept at most, in elements.
const PARTIAL_ELEMENTS: usize = 1 << 22;

/// Tile sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiling {
    /// Batch items.
    pub(super) batch: usize,
    /// Rows.
    pub(super) m: usize,
    /// Columns.
    pub(super) n: usize,
    /// Summed elements.
    pub(super) k: usize,
    /// Rows of a tile.
    pub(super) m_tile: usize,
    /// Columns of a tile.
    pub(super) n_tile: usize,
    /// Parts k is cut into; their products are added in order.
    pub(super) k_parts: usize,
    /// Summed elements multiplied at once.
    pub(super) k_slice: usize,
}

impl Tiling {
    /// The tiling of a contraction of these sizes (batch, m, n, k).
    pub(super) fn new([batch, m, n, k]: [usize; 4], a_direct: bool, b_direct: bool) -> Tiling {
        let mut m_tile = m.min(256);
        let n_tile = n.min((TILE_ELEMENTS / m_tile).max(256));
        m_tile = m.min((TILE_ELEMENTS / n_tile).max(256));
        let mut t = Tiling { batch, m, n, k, m_tile, n_tile, k_parts: 1, k_slice: k };
        // Smaller tiles until there are enough tasks, as long as each is worth one.
        while t.tiles() < TASKS && t.m_tile.max(t.n_tile) > 64 && t.m_tile * t.n_tile * k > 2 * TASK_WORK {
            let larger = if t.m_tile >= t.n_tile { &mut t.m_tile } else { &mut t.n_tile };
            *larger = larger.div_ceil(2).next_multiple_of(16);
        }
        let work = (m * n).saturating_mul(k).saturating_mul(batch) / TASK_WORK;
        if t.tiles() < TASKS && batch.saturating_mul(m * n) * TASKS <= PARTIAL_ELEMENTS {
            let parts = (TASKS / t.tiles()).min(work).min(k / 256).max(1);
            t.k_parts = k.div_ceil(k.div_ceil(parts));
        }
        let part = k.div_ceil(t.k_parts);
        t.k_slice = if a_direct && b_direct { part } else { part.min(PANEL_K) };
        t
    }

    /// Tiles of the output.
    pub(super) fn tiles(&self) -> usize {
        self.batch * self.m.div_ceil(self.m_tile) * self.n.div_ceil(self.n_tile)
    }

    /// Batch item, rows and columns of a tile.
    pub(super) fn tile(&self, i: usize) -> (usize, Range<usize>, Range<usize>) {
        let (across, down) = (self.n.div_ceil(self.n_tile), self.m.div_ceil(self.m_tile));
        let (m, n) = (i / across % down * self.m_tile, i % across * self.n_tile);
        let (m_end, n_end) = ((m + self.m_tile).min(self.m), (n + self.n_tile).min(self.n));
        (i / across / down, m..m_end, n..n_end)
    }

    /// Summed elements of part `i` of k.
    pub(super) fn k_part(&self, i: usize) -> Range<usize> {
        let size = self.k.div_ceil(self.k_parts);
        (i * size).min(self.k)..((i + 1) * size).min(self.k)
    }
}

#[cfg(test)]
mod tests {
    use super::Tiling;

    #[test]
    fn host_tiles_cover_every_output_once() {
        for sizes in
            [[1, 1, 1, 1], [3, 37, 5, 9], [1, 512, 512, 512], [1, 32, 144, 4096], [2, 1000, 3, 70_000]]
        {
            let t = Tiling::new(sizes, false, true);
            let [batch, m, n, k] = sizes;
            let mut seen = vec![0; batch * m * n];
            for i in 0..t.tiles() {
                let (b, rows, cols) = t.tile(i);
                for r in rows {
                    cols.clone().for_each(|c| seen[(b * m + r) * n + c] += 1);
                }
            }
            assert!(seen.iter().all(|s| *s == 1), "{t:?}");
            let parts: Vec<_> = (0..t.k_parts).map(|i| t.k_part(i)).collect();
            assert!(parts.iter().all(|p| !p.is_empty()), "{t:?}");
            assert_eq!(parts.iter().map(std::ops::Range::len).sum::<usize>(), k);
        }
    }

    #[test]
    fn host_long_sums_of_small_outputs_are_cut() {
        assert!(Tiling::new([1, 32, 144, 4096], false, false).k_parts > 1);
        assert_eq!(Tiling::new([1, 512, 512, 512], true, true).k_parts, 1);
    }
}
