// SPDX-License-Identifier: MIT OR Apache-2.0
//! SQLite out of a shared library: a phone's own, which its maker may have changed.
//!
//! Of its interface (<https://www.sqlite.org/c3ref/intro.html>) only what the workloads need is taken. What versions of long
//! ago lack, or builds leave out, is looked for when it is needed.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use libloading::Symbol;
use rusqlite::ffi::{
    SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, SQLITE_DONE, SQLITE_ERROR, SQLITE_OK, SQLITE_OPEN_CREATE,
    SQLITE_OPEN_FULLMUTEX, SQLITE_OPEN_READWRITE, SQLITE_ROW, SQLITE_TRANSIENT,
};
use rusqlite::{Result, ffi};

use super::connection::{Connection, Value};

/// A `sqlite3 *` or a `sqlite3_stmt *`.
type Handle = *mut c_void;
type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

/// The functions that are called for each transaction.
struct Functions {
    open_v2: unsafe extern "C" fn(*const c_char, *mut Handle, c_int, *const c_char) -> c_int,
    close: unsafe extern "C" fn(Handle) -> c_int,
    errmsg: unsafe extern "C" fn(Handle) -> *const c_char,
    exec: unsafe extern "C" fn(
        Handle,
        *const c_char,
        Destructor,
        *mut c_void,
        *mut *mut c_char,
    ) -> c_int,
    prepare_v2: unsafe extern "C" fn(
        Handle,
        *const c_char,
        c_int,
        *mut Handle,
        *mut *const c_char,
    ) -> c_int,
    bind_int64: unsafe extern "C" fn(Handle, c_int, i64) -> c_int,
    bind_text: unsafe extern "C" fn(Handle, c_int, *const c_char, c_int, Destructor) -> c_int,
    step: unsafe extern "C" fn(Handle) -> c_int,
    reset: unsafe extern "C" fn(Handle) -> c_int,
    finalize: unsafe extern "C" fn(Handle) -> c_int,
    changes: unsafe extern "C" fn(Handle) -> c_int,
    column_count: unsafe extern "C" fn(Handle) -> c_int,
    column_text: unsafe extern "C" fn(Handle, c_int) -> *const c_char,
}

/// A library that is loaded.
pub(crate) struct Library {
    path: PathBuf,
    functions: Functions,
    // What the functions are in.
    library: libloading::Library,
}

impl Library {
    /// Loads it. A name without a slash is looked for where the dynamic linker looks.
    pub(super) fn load(path: &Path) -> crate::Result<Self> {
        let wrong = |why: String| crate::Error::Library {
            path: path.to_owned(),
            why,
        };
        // SAFETY: the user named it to have its code run.
        let library =
            unsafe { libloading::Library::new(path) }.map_err(|e| wrong(e.to_string()))?;
        let functions = Functions::of(&library).map_err(wrong)?;
        let library = Self {
            path: path.to_owned(),
            functions,
            library,
        };
        // SAFETY: int sqlite3_threadsafe(void).
        let threadsafe = unsafe {
            library
                .optional::<unsafe extern "C" fn() -> c_int>("sqlite3_threadsafe")
                .map(|threadsafe| threadsafe())
        };
        match threadsafe {
            Some(0) => Err(wrong("is built for one thread alone".into())),
            _ => Ok(library),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A function that need not be there.
    ///
    /// # Safety
    /// It has that type.
    unsafe fn optional<T>(&self, name: &str) -> Option<Symbol<'_, T>> {
        // SAFETY: the caller's.
        unsafe { self.library.get(name.as_bytes()) }.ok()
    }

    /// As `3.7.5`.
    pub(super) fn version(&self) -> String {
        // SAFETY: const char *sqlite3_libversion(void), a string for ever.
        unsafe {
            self.optional::<unsafe extern "C" fn() -> *const c_char>("sqlite3_libversion")
                .map_or_else(|| "unknown".to_owned(), |version| text(version()))
        }
    }

    /// The options that it was built with, as it tells them; none where that was left out.
    pub(super) fn options(&self) -> Vec<String> {
        // SAFETY: const char *sqlite3_compileoption_get(int), a string for ever, or NULL after the last.
        unsafe {
            let get = self.optional::<unsafe extern "C" fn(c_int) -> *const c_char>(
                "sqlite3_compileoption_get",
            );
            let Some(get) = get else { return Vec::new() };
            let options = (0..).map(|n| get(n)).take_while(|option| !option.is_null());
            options.map(|option| text(option)).collect()
        }
    }
}

impl Functions {
    fn of(library: &libloading::Library) -> std::result::Result<Self, String> {
        macro_rules! functions {
            ($($name:ident = $symbol:literal),+ $(,)?) => {
                // SAFETY: the types are those of SQLite's documentation, which has kept them since 3.5.
                unsafe {
                    Self {
                        $($name: *library
                            .get($symbol)
                            .map_err(|_| format!("is no SQLite: {} is not in it", stringify!($name)))?),+
                    }
                }
            };
        }
        Ok(functions! {
            open_v2 = b"sqlite3_open_v2",
            close = b"sqlite3_close",
            errmsg = b"sqlite3_errmsg",
            exec = b"sqlite3_exec",
            prepare_v2 = b"sqlite3_prepare_v2",
            bind_int64 = b"sqlite3_bind_int64",
            bind_text = b"sqlite3_bind_text",
            step = b"sqlite3_step",
            reset = b"sqlite3_reset",
            finalize = b"sqlite3_finalize",
            changes = b"sqlite3_changes",
            column_count = b"sqlite3_column_count",
            column_text = b"sqlite3_column_text",
        })
    }
}

/// A connection to a database.
pub(super) struct Loaded {
    handle: Handle,
    statements: HashMap<&'static str, Handle>,
    library: Arc<Library>,
}

// SAFETY: it is opened with SQLITE_OPEN_FULLMUTEX, in a library that knows threads: any thread may use it.
unsafe impl Send for Loaded {}

impl Loaded {
    pub(super) fn open(library: &Arc<Library>, path: &Path) -> Result<Self> {
        use std::os::unix::ffi::OsStrExt;
        let path = CString::new(path.as_os_str().as_bytes())?;
        let mut connection = Self {
            handle: null_mut(),
            statements: HashMap::new(),
            library: Arc::clone(library),
        };
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
        // SAFETY: strings that live through the call; the handle is set even where it fails.
        let code = unsafe {
            (library.functions.open_v2)(path.as_ptr(), &raw mut connection.handle, flags, null())
        };
        connection.check(code)?;
        Ok(connection)
    }

    fn check(&self, code: c_int) -> Result<()> {
        match code {
            SQLITE_OK | SQLITE_ROW | SQLITE_DONE => Ok(()),
            code => Err(self.error(code)),
        }
    }

    fn error(&self, code: c_int) -> rusqlite::Error {
        // SAFETY: of this connection or of NULL, a string until the next call.
        let message = unsafe { text((self.library.functions.errmsg)(self.handle)) };
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(message))
    }

    fn prepare(&self, sql: &str) -> Result<Handle> {
        let sql = CString::new(sql)?;
        let mut statement = null_mut();
        // SAFETY: a string that ends with NUL, hence -1.
        let code = unsafe {
            let prepare = self.library.functions.prepare_v2;
            prepare(
                self.handle,
                sql.as_ptr(),
                -1,
                &raw mut statement,
                null_mut(),
            )
        };
        self.check(code).map(|()| statement)
    }

    fn bind(&self, statement: Handle, values: &[Value<'_>]) -> Result<()> {
        let functions = &self.library.functions;
        for (n, value) in (1..).zip(values) {
            // SAFETY: the text is copied.
            let code = unsafe {
                match value {
                    Value::Integer(number) => (functions.bind_int64)(statement, n, *number),
                    Value::Text(text) => {
                        let bytes = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
                        let start = text.as_ptr().cast();
                        (functions.bind_text)(statement, n, start, bytes, SQLITE_TRANSIENT())
                    }
                }
            };
            self.check(code)?;
        }
        Ok(())
    }
}

impl Connection for Loaded {
    fn batch(&mut self, sql: &str) -> Result<()> {
        let sql = CString::new(sql)?;
        let exec = self.library.functions.exec;
        // SAFETY: a string that lives through the call; no function is called back.
        let code = unsafe { exec(self.handle, sql.as_ptr(), None, null_mut(), null_mut()) };
        self.check(code)
    }

    fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<u64> {
        let statement = match self.statements.get(sql) {
            Some(statement) => *statement,
            None => {
                let statement = self.prepare(sql)?;
                self.statements.insert(sql, statement);
                statement
            }
        };
        self.bind(statement, values)?;
        let functions = &self.library.functions;
        // SAFETY: the statement is this connection's, and reset after each run.
        let changed = unsafe {
            let code = (functions.step)(statement);
            let result = self.check(code);
            let changed = (functions.changes)(self.handle);
            (functions.reset)(statement);
            result.map(|()| changed)
        };
        changed.map(|changed| u64::try_from(changed).unwrap_or(0))
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<Option<String>>> {
        let statement = self.prepare(sql)?;
        let functions = &self.library.functions;
        // SAFETY: the statement is finalized here; a column's text is copied before that.
        unsafe {
            let code = (functions.step)(statement);
            let columns = match code {
                SQLITE_ROW => (functions.column_count)(statement),
                _ => 0,
            };
            let column = |n| {
                let start = (functions.column_text)(statement, n);
                (!start.is_null()).then(|| text(start))
            };
            let row = (0..columns).map(column).collect();
            let result = self.check(code);
            (functions.finalize)(statement);
            result.map(|()| row)
        }
    }

    fn keep_wal(&mut self) -> Result<()> {
        type Config = unsafe extern "C" fn(Handle, c_int, ...) -> c_int;
        // SAFETY: this option takes an int and an int *, which may be NULL.
        let code = unsafe {
            let config = self.library.optional::<Config>("sqlite3_db_config");
            config.map_or(SQLITE_ERROR, |config| {
                let none: *mut c_int = null_mut();
                config(
                    self.handle,
                    SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
                    1 as c_int,
                    none,
                )
            })
        };
        self.check(code)
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.finalize();
        let code = self.shut();
        self.check(code)
    }
}

impl Loaded {
    fn finalize(&mut self) {
        for (_, statement) in self.statements.drain() {
            // SAFETY: it is used no more.
            unsafe { (self.library.functions.finalize)(statement) };
        }
    }

    /// A handle that cannot be closed is left alone.
    fn shut(&mut self) -> c_int {
        // SAFETY: its statements are finalized; of NULL nothing is done.
        let code = unsafe { (self.library.functions.close)(self.handle) };
        if code == SQLITE_OK {
            self.handle = null_mut();
        }
        code
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.finalize();
        self.shut();
    }
}

/// # Safety
/// It ends with NUL, or is NULL.
unsafe fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller's.
    unsafe { CStr::from_ptr(start) }
        .to_string_lossy()
        .into_owned()
}
