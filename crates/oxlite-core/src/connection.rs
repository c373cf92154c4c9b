//! A connection with its policy: opened by the rules of a profile, statements cached, implicit
//! transactions begun as PEP 249 expects; and handed over from one user to the next (`handover`).

mod handover;

use std::ffi::CStr;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oxlite_sqlite::{
    BackupTarget, Checkpoint, CheckpointMode, ConnectionCell, EndedTransactions, Glance, LockError,
    Locked, Mutex, OpenFlags, OtherUsers, TransactionState, codes, other_users_of,
};

use crate::activity::{self, Activity};
use crate::error::{self, Error, Result};
use crate::open::cannot_open;
use crate::open::options::{DurableCommit, OpenOptions};
use crate::open::profile::Profile;
use crate::open::setting::{Setting, are_of_wal_mode};
use crate::open::settings::{JournalConversion, apply, set_again};
use crate::open::strangers;
use crate::read::scripts::{Script, Scripts};
use crate::read::sql::{self, StatementKind};
use crate::read::statement_cache::{CachedStatement, StatementCache};
use crate::wait::busy::BusyPolicy;
use crate::wait::deadline::Deadline;
use crate::write::queue::holder::Held;
use crate::write::queue::{QueueStatistics, Writer};
use crate::write::shared_commit::{self, SharedCommit, SharedCommitStatistics};
use crate::write::wal::{self, Log, WalStatistics};

use handover::Changes;

/// An open database connection, until it is closed or handed over.
///
/// It may be shared between threads; whoever uses it holds its lock.
pub struct Connection {
    physical: Arc<Physical>,
    /// Whether somebody else has it by now. Changed under the connection's lock.
    is_over: AtomicBool,
    /// Held while it is interrupted, and while it is handed over: so that nobody else is meant.
    interrupting: Mutex<()>,
}

impl Deref for Connection {
    type Target = Physical;

    fn deref(&self) -> &Physical {
        &self.physical
    }
}

/// What stays when a connection is handed over.
pub struct Physical {
    raw: oxlite_sqlite::Connection,
    statements: ConnectionCell<StatementCache>,
    profile: &'static Profile,
    busy: BusyPolicy,
    timeout: Duration,
    deadline: Arc<Deadline>,
    writer: Option<Arc<Writer>>,
    /// The log of its main database, if that is in a file and the profile keeps it.
    log: Option<Arc<Log>>,
    /// What is told of its main database to those who watch that, if the log is kept.
    activity: Option<Arc<Activity>>,
    /// Those with whom its commits share their syncs, until it is closed.
    shared: Mutex<Option<Arc<SharedCommit>>>,
    /// Whether it may share its page cache, and so wait for other connections of this process.
    may_share_cache: AtomicBool,
    uri: bool,
    settings: Vec<Setting>,
    converted: Option<JournalConversion>,
    /// Whether a COMMIT had an outcome that is unknown.
    is_in_doubt: AtomicBool,
    /// Whether SQLite may call code of the application.
    has_callbacks: AtomicBool,
    changes: Changes,
}

impl Connection {
    /// Opens the database, applies the profile and reads it back.
    ///
    /// May wait for locks, so a caller with a global lock of its own lets that go first.
    pub fn open(options: &OpenOptions) -> Result<Self> {
        let flags = OpenFlags {
            uri: options.uri,
            shared_cache: options.shared_cache,
            ..OpenFlags::default()
        };
        let is_for_strangers = options.profile.is_for_strangers;
        let explain =
            |error: oxlite_sqlite::Error| cannot_open::explained(error, &options.name, options.uri);
        let raw = match is_for_strangers {
            true => strangers::open(&options.name, flags, explain)?,
            false => oxlite_sqlite::Connection::open(&options.name, flags).map_err(explain)?,
        };
        let deadline = Arc::new(Deadline::new(options.is_cancelled));
        let (applied, writer, log, activity, shared) = {
            // Nobody else knows the connection yet, so it is open and free.
            let locked = raw.lock().map_err(|_| closed())?;
            if options.durable_commit == DurableCommit::Shared {
                // However opening ends, until the group has been joined.
                locked.config(codes::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, Some(true))?;
            }
            let writer = options.busy.install(&locked, options.timeout, &deadline)?;
            if options.profile.is_strict {
                locked.watch_commits();
            }
            // Opening is one call: what its pragmas wait for, and who joins, they wait for together.
            let began = Instant::now();
            let applied =
                deadline.waiting_at_most(options.timeout, || apply(&locked, &options.wanted()));
            let mut applied = applied.map_err(|error| match error {
                Error::Sqlite(error) if is_for_strangers => {
                    Error::Sqlite(strangers::explained(explain(error), locked.path()))
                }
                Error::Sqlite(error) => Error::Sqlite(explain(error)),
                other => other,
            })?;
            if is_for_strangers && only_reads(&locked, &applied.settings) {
                locked.only_read()?;
                locked.leave_log();
            }
            let keeps_log = options.profile.is_strict && !is_for_strangers;
            let log = keeps_log.then(|| log_of(&raw, &locked, &applied.settings));
            let remaining = options.timeout.saturating_sub(began.elapsed());
            let shared = share_commits(&locked, options, &mut applied.settings, remaining)?;
            if let (Some(writer), Some(_)) = (&writer, shared.as_ref().and_then(|s| s.member())) {
                writer.go_forward();
            }
            let log = log.flatten();
            let path = locked.path().filter(|_| log.is_some());
            let activity = path.and_then(|path| Activity::of(&path).ok());
            activity::observe(&locked, activity.clone(), options.slow_statements);
            (applied, writer, log, activity, shared)
        };
        Ok(Self::of(Arc::new(Physical {
            statements: raw.cell(StatementCache::new(options.cached_statements)),
            raw,
            profile: options.profile,
            busy: options.busy.clone(),
            timeout: options.timeout,
            deadline,
            writer,
            log,
            activity,
            shared: Mutex::new(shared),
            may_share_cache: AtomicBool::new(options.may_share_cache()),
            uri: options.uri,
            settings: applied.settings,
            converted: applied.converted,
            is_in_doubt: AtomicBool::new(false),
            has_callbacks: AtomicBool::new(false),
            changes: Changes::default(),
        })))
    }

    fn of(physical: Arc<Physical>) -> Self {
        Self {
            physical,
            is_over: AtomicBool::new(false),
            interrupting: Mutex::new(()),
        }
    }

    /// Refuses one that somebody else has by now. Asked with the lock held.
    #[inline]
    fn unless_over<L>(&self, locked: Result<L, LockError>) -> Result<L, LockError> {
        match self.is_over.load(Ordering::Relaxed) {
            true => Err(LockError::Closed),
            false => locked,
        }
    }

    /// Locks the connection, waiting while another thread holds it.
    pub fn lock(&self) -> Result<Locked<'_>, LockError> {
        self.unless_over(self.raw.lock())
    }

    /// Locks the connection; `None` when another thread holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<Result<Locked<'_>, LockError>> {
        Some(self.unless_over(self.raw.try_lock()?))
    }

    /// Locks the connection only to look at it, which is allowed in every callback.
    pub fn glance(&self) -> Result<Glance<'_>, LockError> {
        self.unless_over(self.raw.glance())
    }

    /// The same; `None` when another thread holds it.
    pub fn try_glance(&self) -> Option<Result<Glance<'_>, LockError>> {
        Some(self.unless_over(self.raw.try_glance()?))
    }

    /// Locks the target of a backup that is not finished, for a step of it.
    pub fn lock_as_backup_target(&self) -> Result<BackupTarget<'_>, LockError> {
        self.unless_over(self.raw.lock_as_backup_target())
    }

    /// The same; `None` when another thread holds it.
    pub fn try_lock_as_backup_target(&self) -> Option<Result<BackupTarget<'_>, LockError>> {
        Some(self.unless_over(self.raw.try_lock_as_backup_target()?))
    }

    /// Whether a transaction was open when somebody had the connection last; without waiting.
    pub fn was_in_transaction(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed) && self.raw.was_in_transaction()
    }

    /// How many rows had been changed when somebody had the connection last; without waiting.
    pub fn changes_so_far(&self) -> i64 {
        self.raw.changes_so_far()
    }

    /// Whether it has been neither closed nor handed over.
    pub fn is_open(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed) && self.raw.is_open()
    }

    /// Makes the statements that run now fail with `SQLITE_INTERRUPT`, also while they wait for a
    /// lock; from any thread. `false` if the connection is closed, or inherited in a fork.
    pub fn interrupt(&self) -> bool {
        if self.raw.is_inherited() {
            return false; // another thread of the parent may have had the lock that `wake` takes
        }
        let _until_then = self.interrupting.lock();
        if self.is_over.load(Ordering::Relaxed) {
            return false;
        }
        let is_open = self.raw.interrupt_handle().interrupt();
        self.deadline.wake();
        is_open
    }
}

impl Physical {
    /// The profile it was opened with.
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// How it waits for locks.
    pub fn busy(&self) -> &BusyPolicy {
        &self.busy
    }

    /// For how long at most.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// What became of each pragma of the profile.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// How opening has changed the journal mode of an existing file, persistently; if it has.
    pub fn converted(&self) -> Option<&JournalConversion> {
        self.converted.as_ref()
    }

    /// Notes that SQLite may call code of the application from now on: functions, collations, hooks.
    pub fn note_callback(&self) {
        self.has_callbacks.store(true, Ordering::Relaxed);
        self.changes.note();
    }

    /// Notes that it is no more as it was opened, in a way that only closing it undoes for whoever comes next.
    pub fn note_change(&self) {
        self.changes.note();
    }

    /// Whether that may be.
    pub(crate) fn has_callbacks(&self) -> bool {
        self.has_callbacks.load(Ordering::Relaxed)
    }

    /// From now on only this thread uses the connection, or any may again. Who would wait for the write lock
    /// that he holds himself, by a connection which only he uses, is refused at once.
    pub fn confine(&self, to_this_thread: bool) {
        if let Some(writer) = &self.writer {
            writer.confine(to_this_thread);
        }
    }

    /// Who else of this process has the main database open, if it is a file for which `is_wanted` says so:
    /// another SQLite, or plain reading. Takes a system call for each open descriptor of the process.
    pub fn other_users(
        &self,
        locked: &Locked<'_>,
        is_wanted: impl FnOnce(&Path) -> bool,
    ) -> Option<OtherUsers> {
        let path = locked.path().filter(|path| is_wanted(path))?;
        other_users_of(path)
    }

    /// Has the layer above asked at once whether what waits for a lock here may go on.
    pub fn wake(&self) {
        if !self.raw.is_inherited() {
            self.deadline.wake();
        }
    }

    /// Whether the step that runs may be broken off with nothing lost; for the thread that runs it.
    pub fn is_breakable(&self) -> bool {
        self.raw.is_breakable()
    }

    /// Counts writes that shared one COMMIT.
    pub(crate) fn count_batch(&self, writes: usize) {
        if let Some(activity) = &self.activity {
            activity.count_batch(writes);
        }
    }

    /// When the statement that runs must end.
    pub fn deadline(&self) -> &Arc<Deadline> {
        &self.deadline
    }

    /// Whether the outcome of one of its COMMITs is unknown: it had better not be used again.
    pub fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Relaxed)
    }

    /// Why a statement has really failed: its deadline and an interruption show as the errors of
    /// what they broke off, among them the wait for a lock.
    pub fn explain(&self, locked: &Locked<'_>, error: oxlite_sqlite::Error) -> Error {
        let of = Circumstances {
            connection: self,
            locked,
        };
        let advice = (self.profile.is_for_strangers)
            .then(|| strangers::advice(&error, locked.is_read_only()))
            .flatten();
        let error = match advice {
            Some(advice) => error.with_context(&advice),
            None => error,
        };
        let error = Error::explained(error, &of);
        if matches!(error, Error::CommitOutcomeUnknown(_)) {
            self.is_in_doubt.store(true, Ordering::Relaxed);
        }
        error
    }

    /// What the queue for the write lock has done in this process, if this connection waits in one.
    pub fn queue_statistics(&self) -> Option<QueueStatistics> {
        self.writer
            .as_ref()
            .map(|writer| writer.lane().statistics())
    }

    /// Makes a checkpoint of the database `schema`. Where the mode takes the write lock, it stands in
    /// line for that as the busy policy says, and then waits for `patience` at most: nobody else
    /// writes meanwhile.
    pub fn checkpoint(
        &self,
        locked: &Locked<'_>,
        schema: &CStr,
        mode: CheckpointMode,
        patience: Duration,
    ) -> Result<Checkpoint> {
        locked
            .check_commit_guard()
            .map_err(|error| self.explain(locked, error))?;
        let turn = match mode {
            CheckpointMode::Passive => None,
            _ => Some(locked.enter_write_queue()?),
        };
        if let Some(turn) = &turn {
            turn.tell(c"PRAGMA wal_checkpoint");
        }
        let outcome = locked.checkpoint_within(schema, mode, patience, true);
        drop(turn);
        if let Some(log) = self.log.as_ref().filter(|_| schema == c"main") {
            log.count(&outcome);
        }
        outcome.map_err(|error| self.explain(locked, error))
    }

    /// Runs `work` while this connection is at the head of the queue for the write lock, which it leaves free:
    /// so that a program which knows of no queue gets the lock; `SQLITE_BUSY` if it does not get there as long as a
    /// statement would wait. Writers of other processes go past it when they
    /// have waited for a while, as for every head that does nothing.
    pub fn give_way<T>(&self, locked: &Locked<'_>, work: impl FnOnce() -> T) -> Result<T> {
        let turn = locked
            .enter_write_queue()
            .map_err(|error| self.explain(locked, error))?;
        if !turn.lead() {
            let busy = oxlite_sqlite::Error::from_code(codes::SQLITE_BUSY);
            return Err(self.explain(locked, busy));
        }
        turn.tell(c"PRAGMA wal_checkpoint");
        Ok(work())
    }

    /// What the commits of the main database have come to in this process, if they share their syncs with
    /// those of others, or are to.
    pub fn shared_commit_statistics(&self) -> Option<SharedCommitStatistics> {
        if self.is_inherited() {
            return None; // as for the log
        }
        let shared = self.shared.lock().clone();
        shared.map(|shared| shared.statistics())
    }

    /// Runs `work`, whose commits nobody is told of before [`settle`](Self::settle) has returned for the
    /// ticket.
    pub(crate) fn deferring_answers<T>(
        &self,
        locked: &Locked<'_>,
        work: impl FnOnce() -> T,
    ) -> (T, Option<Ticket>) {
        let (result, number, ended) = locked.deferring_answers(work);
        let shared = self.shared.lock().clone();
        let ticket = match number.zip(shared) {
            Some((number, shared)) => Some(Ticket {
                number,
                shared,
                ended: Mutex::new(ended),
            }),
            None => {
                ended.conclude();
                None
            }
        };
        (result, ticket)
    }

    /// What has become of the main database's log in this process; `None` if it has none that is kept.
    pub fn wal_statistics(&self) -> Option<WalStatistics> {
        // Another thread of the parent may have had the locks of an inherited one.
        let log = self.log.as_ref().filter(|_| !self.is_inherited());
        log.map(|log| log.statistics())
    }

    /// Whether it was opened before a fork, in the parent process, so that it cannot be used.
    pub fn is_inherited(&self) -> bool {
        self.raw.is_inherited()
    }

    /// Whether `cached` is one of this connection's statements.
    pub fn has_prepared(&self, cached: &CachedStatement) -> bool {
        self.raw.has_prepared(&cached.statement)
    }

    /// A kept statement for `sql`, if one is at rest. Never waits.
    #[inline]
    pub fn kept_statement(&self, locked: &Locked<'_>, sql: &str) -> Option<Box<CachedStatement>> {
        self.statements
            .with(locked, |statements| statements.take(sql))
    }

    /// The statement for `text`, kept or prepared; `None` if it holds only space and comments.
    ///
    /// Preparing may read the schema, hence wait for a lock.
    pub fn statement(
        &self,
        locked: &Locked<'_>,
        text: &str,
    ) -> Result<Option<Box<CachedStatement>>> {
        if let Some(kept) = self.kept_statement(locked, text) {
            return Ok(Some(kept));
        }
        self.check_length(locked, text)?;
        if text.contains('\0') {
            return Err(Error::Programming(
                "the query contains a null character".into(),
            ));
        }
        let prepared = locked
            .prepare(text, true)
            .map_err(|error| self.explain(locked, error))?;
        let Some(statement) = prepared.statement else {
            return Ok(None);
        };
        if !sql::is_blank(&text[prepared.tail_offset..]) {
            return Err(Error::Programming(
                "You can only execute one statement at a time.".into(),
            ));
        }
        let cached = CachedStatement::new(statement, text, locked);
        if sql::may_set_when_prepared(text) {
            self.changes.note();
        }
        Ok(Some(cached))
    }

    /// Whether the next step of `cached` does not wait for long without saying so first
    /// ([`oxlite_sqlite::call_before_waiting`]): a query, which takes its read lock at once or not, or
    /// a data modification inside a transaction that has the write lock already. What commits, or
    /// may wait for another connection with which it shares its cache, is none of these.
    #[inline]
    pub fn is_prompt(&self, cached: &CachedStatement, locked: &Locked<'_>) -> bool {
        match cached.kind {
            StatementKind::Query => {
                cached.statement.is_read_only() && !self.may_share_cache.load(Ordering::Relaxed)
            }
            StatementKind::DataModification => {
                !locked.is_autocommit()
                    && locked.transaction_state() == TransactionState::Write
                    && !self.may_share_cache.load(Ordering::Relaxed)
            }
            StatementKind::Attach => {
                // Its name may be a URI, whose parameters nobody has looked at.
                if self.uri {
                    self.may_share_cache.store(true, Ordering::Relaxed);
                }
                false
            }
            StatementKind::Setting => {
                self.changes.note();
                false
            }
            StatementKind::Other => false,
        }
    }

    /// Refuses SQL longer than this connection's limit, before anything copies it.
    fn check_length(&self, locked: &Locked<'_>, text: &str) -> Result<()> {
        let longest = locked.limit(codes::SQLITE_LIMIT_SQL_LENGTH);
        if longest.is_none_or(|longest| text.len() <= longest.unsigned_abs() as usize) {
            return Ok(());
        }
        let advice = match self.profile.is_for_strangers {
            true => strangers::lowered("SQLITE_LIMIT_SQL_LENGTH"),
            false => String::new(),
        };
        Err(Error::Data(format!("query string is too large{advice}")))
    }

    /// Gives a statement back, reset, for the next time.
    #[inline]
    pub fn keep(&self, statement: Box<CachedStatement>, locked: &Locked<'_>) {
        // Finalised with the cell closed again.
        let evicted = self
            .statements
            .with(locked, |statements| statements.put(statement, locked));
        if let Some(evicted) = evicted {
            evicted.finalize(locked);
        }
    }

    /// Runs one of the transaction statements (BEGIN, COMMIT, ROLLBACK), keeping it prepared.
    pub fn run(&self, locked: &Locked<'_>, sql: &str) -> Result<()> {
        if let Some(mut cached) = self.statement(locked, sql)? {
            let outcome = cached.statement.step(locked);
            self.keep(cached, locked);
            outcome.map_err(|error| self.explain(locked, error))?;
        }
        Ok(())
    }

    /// Runs every statement of `script`, discarding rows; before, if `commits`, commits an open
    /// transaction.
    pub fn run_script(&self, locked: &Locked<'_>, script: &str, commits: bool) -> Result<()> {
        self.check_length(locked, script)?;
        self.changes.note(); // it may have any statement in it
        if commits && !locked.is_autocommit() {
            self.run(locked, "COMMIT")?;
        }
        self.run_batch(locked, script)
            .map_err(|error| self.explain(locked, error))
    }

    /// Runs a script, with what is kept of it if it was run before.
    fn run_batch(&self, locked: &Locked<'_>, script: &str) -> oxlite_sqlite::Result<()> {
        let (capacity, known) = self.statements.with(locked, |statements| {
            (statements.capacity(), statements.scripts.take(script))
        });
        // An authorizer is asked while a statement is prepared, of each script that is run.
        if capacity == 0 || !Scripts::may_have(script) || locked.has_authorizer() {
            return locked.execute_batch(script);
        }
        let script = match known {
            Some(mut known) => {
                if let Err(error) = known.run(locked, capacity) {
                    known.finalize(locked);
                    return Err(error);
                }
                known
            }
            None => {
                locked.execute_batch(script)?;
                Script::noted(script)
            }
        };
        let kept = |statements: &mut StatementCache| statements.scripts.put(script);
        if let Some(oldest) = self.statements.with(locked, kept) {
            oldest.finalize(locked);
        }
        Ok(())
    }

    /// Lets go of all kept statements and closes. An open transaction is rolled back.
    pub fn close(&self, locked: Locked<'_>) -> Result<()> {
        let kept = self.statements.with(&locked, StatementCache::clear);
        drop(kept);
        self.leave_log_alone(&locked);
        locked.close()?;
        let shared = self.shared.lock().take();
        drop(shared);
        Ok(())
    }

    /// After a sync that has failed: closing makes no checkpoint, which would not notice what is missing.
    fn leave_log_alone(&self, locked: &Locked<'_>) {
        let shared = self.shared.lock().clone();
        if shared.is_some_and(|shared| shared.is_poisoned()) {
            let _ = locked.config(codes::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, Some(true));
        }
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        if self.raw.is_inherited() {
            // Another thread of the parent may have been changing it when this child was forked.
            let statements = self.statements.get_mut();
            std::mem::forget(std::mem::replace(statements, StatementCache::new(0)));
        } else if let Some(Ok(locked)) = self.raw.try_lock() {
            self.leave_log_alone(&locked);
        }
    }
}

/// A connection as it is when SQLite has refused something.
struct Circumstances<'c> {
    connection: &'c Physical,
    locked: &'c Locked<'c>,
}

impl error::Circumstances for Circumstances<'_> {
    fn is_strict(&self) -> bool {
        self.connection.profile.is_strict
    }

    fn shares_commits(&self) -> bool {
        self.connection.shared.lock().is_some()
    }

    fn has_write_queue(&self) -> bool {
        self.connection.writer.is_some()
    }

    fn take_passed_deadline(&self) -> bool {
        self.connection.deadline.take_passed()
    }

    fn is_interrupted(&self) -> bool {
        self.locked.is_interrupted()
    }

    fn holder(&self) -> Option<Held> {
        // Who has the write lock itself waits for readers, or for an attached database.
        let is_ours = self.locked.transaction_state() == TransactionState::Write;
        let writer = self.connection.writer.as_ref().filter(|_| !is_ours);
        writer.map(|writer| writer.holder())
    }
}

/// The place of commits among those of all processes, before they may be acknowledged.
pub struct Ticket {
    number: u64,
    shared: Arc<SharedCommit>,
    /// What is to be done when they are durable.
    ended: Mutex<EndedTransactions>,
}

impl Ticket {
    /// Waits until they are durable. Needs no connection.
    pub fn settle(&self) -> Result<()> {
        if let Some(member) = self.shared.member() {
            shared_commit::settle(member, self.number).map_err(Error::CommitOutcomeUnknown)?;
        }
        std::mem::take(&mut *self.ended.lock()).conclude();
        Ok(())
    }
}

/// Has the commits share their syncs with those of other processes, if that is asked for and the database
/// can be written; where it cannot be had, each is synced by itself.
fn share_commits(
    locked: &Locked<'_>,
    options: &OpenOptions,
    settings: &mut [Setting],
    patience: Duration,
) -> Result<Option<Arc<SharedCommit>>> {
    if options.durable_commit == DurableCommit::Each {
        return Ok(None);
    }
    let path = locked.path().filter(|_| are_of_wal_mode(settings));
    let Some(path) = path else {
        return Err(Error::Sqlite(oxlite_sqlite::Error::new(
            codes::SQLITE_ERROR,
            "durable_commit=\"shared\" needs a database in a file, in WAL mode",
        )));
    };
    if locked.is_read_only() {
        return Ok(None);
    }
    let shared = SharedCommit::of(&path, patience)?;
    if let Some(member) = shared.as_ref().and_then(|shared| shared.member()) {
        set_again(
            locked,
            &options.wanted(),
            settings,
            ("synchronous", "NORMAL"),
        )?;
        shared_commit::guard(locked, Arc::clone(member));
    }
    // From here on whoever closes it looks for himself.
    locked.config(codes::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, Some(false))?;
    Ok(shared)
}

/// The log of a connection's main database, which it is to keep short from now on unless the caller has set
/// `wal_autocheckpoint`. Where the file cannot be identified, SQLite's automatic checkpoints stay.
fn log_of(
    raw: &oxlite_sqlite::Connection,
    locked: &Locked<'_>,
    settings: &[Setting],
) -> Option<Arc<Log>> {
    let log = Log::of(&locked.path()?).ok()?;
    log.watch(raw.watch(locked));
    let is_set = |setting: &Setting| setting.name == "wal_autocheckpoint";
    if !settings.iter().any(is_set) {
        wal::keep(Arc::clone(&log), locked, settings);
    }
    Some(log)
}

/// Whether it is to read a file and nothing else, so that no statement may change that.
fn only_reads(locked: &Locked<'_>, settings: &[Setting]) -> bool {
    let is_query_only =
        |setting: &Setting| setting.name == "query_only" && setting.effective == "ON";
    // A database in memory may be made of bytes (`deserialize`), which then stay as they are.
    locked.path().is_some() && settings.iter().any(is_query_only)
}

/// The error for a connection that is no longer open.
fn closed() -> Error {
    Error::Programming("Cannot operate on a closed database.".into())
}
