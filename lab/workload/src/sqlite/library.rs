// SPDX-License-Identifier: MIT OR Apache-2.0
//! SQLite from a shared library, for example a phone's own, which its maker may have changed.
//!
//! Only the functions that the workloads need are used (<https://www.sqlite.org/c3ref/intro.html>). Functions that old
//! versions lack, or that builds can leave out, are looked up when they are needed.

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

/// Declares the functions that every library must have, by their names without `sqlite3_`.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),+) -> $result:ty,)+) => {
        struct Functions { $($name: unsafe extern "C" fn($($argument),+) -> $result,)+ }

        impl Functions {
            fn of(library: &libloading::Library) -> std::result::Result<Self, String> {
                // SAFETY: the types are those of SQLite's documentation, which has kept them since 3.5.
                Ok(unsafe {
                    Self {
                        $($name: *library
                            .get(concat!("sqlite3_", stringify!($name)))
                            .map_err(|_| format!("is not SQLite: it lacks {}", stringify!($name)))?),+
                    }
                })
            }
        }
    };
}

functions! {
    open_v2: fn(*const c_char, *mut Handle, c_int, *const c_char) -> c_int,
    close: fn(Handle) -> c_int,
    errmsg: fn(Handle) -> *const c_char,
    exec: fn(Handle, *const c_char, Destructor, *mut c_void, *mut *mut c_char) -> c_int,
    prepare_v2: fn(Handle, *const c_char, c_int, *mut Handle, *mut *const c_char) -> c_int,
    bind_int64: fn(Handle, c_int, i64) -> c_int,
    bind_text: fn(Handle, c_int, *const c_char, c_int, Destructor) -> c_int,
    step: fn(Handle) -> c_int,
    reset: fn(Handle) -> c_int,
    finalize: fn(Handle) -> c_int,
    changes: fn(Handle) -> c_int,
    column_count: fn(Handle) -> c_int,
    column_text: fn(Handle, c_int) -> *const c_char,
}

/// A loaded library.
pub(crate) struct Library {
    path: PathBuf,
    functions: Functions,
    // Keeps the code of `functions` loaded.
    library: libloading::Library,
}

impl Library {
    /// Loads a library. A name without a slash is searched for in the dynamic linker's places.
    pub(super) fn load(path: &Path) -> crate::Result<Self> {
        let wrong = |why: String| crate::Error::Library {
            path: path.to_owned(),
            why,
        };
        // SAFETY: the user named the library in order to run its code.
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
            Some(0) => Err(wrong("is built for one thread only".into())),
            _ => Ok(library),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks up a function that may be missing.
    ///
    /// # Safety
    /// `T` must be the function's type.
    unsafe fn optional<T>(&self, name: &str) -> Option<Symbol<'_, T>> {
        // SAFETY: the caller guarantees the type.
        unsafe { self.library.get(name.as_bytes()) }.ok()
    }

    /// Returns the version, for example `3.7.5`.
    pub(super) fn version(&self) -> String {
        // SAFETY: const char *sqlite3_libversion(void), which returns a static string.
        unsafe {
            self.optional::<unsafe extern "C" fn() -> *const c_char>("sqlite3_libversion")
                .map_or_else(|| "unknown".to_owned(), |version| text(version()))
        }
    }

    /// Returns the library's compile options as it reports them; none if it was built without that function.
    pub(super) fn options(&self) -> Vec<String> {
        // SAFETY: const char *sqlite3_compileoption_get(int), which returns a static string, or NULL after the last
        // one.
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

/// A connection to a database.
pub(super) struct Loaded {
    handle: Handle,
    statements: HashMap<&'static str, Handle>,
    library: Arc<Library>,
}

// SAFETY: it is opened with SQLITE_OPEN_FULLMUTEX in a library with thread support, so any thread may use it.
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
        // SAFETY: the strings outlive the call; the handle is set even if the call fails.
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
        // SAFETY: the handle is this connection's or NULL; the string is valid until the next call.
        let message = unsafe { text((self.library.functions.errmsg)(self.handle)) };
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(message))
    }

    fn prepare(&self, sql: &str) -> Result<Handle> {
        let sql = CString::new(sql)?;
        let mut statement = null_mut();
        // SAFETY: the string ends with NUL, hence -1.
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
            // SAFETY: SQLite copies the text.
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
        // SAFETY: the string outlives the call; there is no callback.
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
        // SAFETY: the statement belongs to this connection, and is reset after each run.
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
        // SAFETY: the statement is finalized here; the columns' text is copied before that.
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
            // SAFETY: the statement is not used any more.
            unsafe { (self.library.functions.finalize)(statement) };
        }
    }

    /// Closes the handle. One that cannot be closed is leaked.
    fn shut(&mut self) -> c_int {
        // SAFETY: all statements are finalized; NULL is allowed and does nothing.
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
/// `start` must be NULL or point to a string that ends with NUL.
unsafe fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller guarantees it.
    unsafe { CStr::from_ptr(start) }
        .to_string_lossy()
        .into_owned()
}
