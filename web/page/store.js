// What this browser keeps between visits: one snapshot of the training. Where storage is refused (private windows, full disks) the page
// works without it, and `put` fails each time.

const NAME = 'griffinfly';
const STORE = 'trainings';
const KEY = 'digits';

function opened() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error('another tab holds the storage'));
  });
}

async function transact(mode, action) {
  const database = await opened();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = action(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

/** The snapshot of the last visit, or undefined. */
export const get = () => transact('readonly', (store) => store.get(KEY));
/** Keeps a snapshot in the place of the last one. */
export const put = (snapshot) => transact('readwrite', (store) => store.put(snapshot, KEY));
/** Forgets it. */
export const remove = () => transact('readwrite', (store) => store.delete(KEY));
