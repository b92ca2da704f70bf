//! Work on several threads, whose results do not depend on how many there are.

use crate::error::CompileError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads worth having; one also where there are none, as in a browser.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn failed<E>(_: E) -> CompileError {
    CompileError::Malformed("a thread of the compiler failed".into())
}

/// Results for all items, in their order; of errors the first.
pub(crate) fn all<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, CompileError> + Sync,
) -> Result<Vec<R>, CompileError> {
    let workers = workers().min(items.len().max(1));
    if workers == 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let run = || {
        let mut made = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return made };
            made.push((number, work(item)));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(run)).collect();
        let mut all = Vec::new();
        for handle in handles {
            all.extend(handle.join().map_err(failed)?);
        }
        Ok::<_, CompileError>(all)
    })?;
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, result)| result).collect()
}

/// The results of two pieces of work at the same time; of errors that of the first.
pub(crate) fn both<A: Send, B>(
    first: impl FnOnce() -> Result<A, CompileError> + Send,
    second: impl FnOnce() -> Result<B, CompileError>,
) -> Result<(A, B), CompileError> {
    if workers() == 1 {
        return Ok((first()?, second()?));
    }
    std::thread::scope(|scope| {
        let other = scope.spawn(first);
        let b = second();
        let a = other.join().map_err(failed)??;
        Ok((a, b?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(what: &str) -> CompileError {
        CompileError::Malformed(what.into())
    }

    #[test]
    fn results_are_in_order_and_errors_the_first() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(all(&items, |i| Ok(i * 2)).unwrap(), items.iter().map(|i| i * 2).collect::<Vec<_>>());
        let error = all(&items, |i| if i % 300 == 299 { Err(refused(&i.to_string())) } else { Ok(()) });
        assert_eq!(error.unwrap_err().to_string(), refused("299").to_string());
        assert_eq!(all(&[], |(): &()| Ok(())).unwrap(), []);
    }

    #[test]
    fn both_are_done() {
        assert_eq!(both(|| Ok(1), || Ok("two")).unwrap(), (1, "two"));
        let error = both::<(), ()>(|| Err(refused("one")), || Err(refused("two"))).unwrap_err();
        assert_eq!(error.to_string(), refused("one").to_string());
        assert!(both(|| Ok(()), || Err::<(), _>(refused("two"))).is_err());
    }
}
