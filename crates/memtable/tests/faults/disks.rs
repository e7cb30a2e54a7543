//! Real files: a full disk, and files that are no logs.

use silvics_memtable::log::RecoveryError;
use silvics_memtable::{
    BufferOptions, ByteIndex, LogFolder, LogStorage, SyncPolicy, WriteBatch, WriteBuffer,
    WriteError, WriteOptions,
};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

type Opened = Result<WriteBuffer, String>;

fn open(folder: &Path, sync: SyncPolicy) -> Opened {
    let storage = Arc::new(LogFolder::open(folder).unwrap());
    let options = BufferOptions { sync, ..BufferOptions::default() };
    WriteBuffer::<ByteIndex>::recover(options, storage)
        .map(|(buffer, _)| buffer)
        .map_err(|error| error.to_string())
}

/// A file system of 256 KiB, unmounted when it is dropped.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(folder.path())
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_makes_the_buffer_read_only() {
    let Some(disk) = Tmpfs::new() else {
        println!("SKIPPED: this process may not mount a tmpfs");
        return;
    };
    let folder = disk.0.path().join("logs");
    let buffer = open(&folder, SyncPolicy::EveryGroup).unwrap();
    let reserve = disk.0.path().join("reserve");
    std::fs::write(&reserve, vec![1; 32 << 10]).unwrap();
    let mut written = 0_u64;
    let error = loop {
        match buffer.put(&written.to_be_bytes(), &[1; 3000]) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1000, "the disk is not full");
    };
    assert!(matches!(error, WriteError::ReadOnly(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("could not be appended to: No space left on device"), "{text}");
    let all = |buffer: &WriteBuffer| {
        (0..written).all(|number| buffer.get(&number.to_be_bytes()).is_some())
    };
    assert!(all(&buffer));
    assert_eq!(buffer.get(&written.to_be_bytes()), None, "the failed write is visible");
    drop(buffer);
    // No room for another log: the logs stay as they are.
    let refused = open(&folder, SyncPolicy::EveryGroup).unwrap_err();
    assert!(refused.contains("No space left on device"), "{refused}");
    std::fs::remove_file(&reserve).unwrap();
    let buffer = open(&folder, SyncPolicy::EveryGroup).unwrap();
    assert!(all(&buffer), "an acknowledged write is lost");
}

#[test]
fn a_file_that_is_no_log_is_refused_with_its_reason() {
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let folder = tempfile::tempdir().unwrap();
        let buffer = open(folder.path(), SyncPolicy::EveryGroup).unwrap();
        for number in 0..5_u64 {
            buffer.put(&number.to_be_bytes(), b"value").unwrap();
        }
        drop(buffer);
        let file = LogFolder::open(folder.path()).unwrap().file(1);
        let mut bytes = std::fs::read(&file).unwrap();
        change(&mut bytes);
        std::fs::write(&file, bytes).unwrap();
        let opened = open(folder.path(), SyncPolicy::EveryGroup);
        opened
            .map(|buffer| (0..5_u64).take_while(|n| buffer.get(&n.to_be_bytes()).is_some()).count())
    };
    let refused = |change: &dyn Fn(&mut Vec<u8>)| damaged(change).unwrap_err();
    assert_eq!(damaged(&|_| ()), Ok(5));
    assert_eq!(damaged(&|bytes| bytes.clear()), Ok(0));
    assert_eq!(damaged(&|bytes| bytes.truncate(bytes.len() - 1)), Ok(4));
    assert_eq!(damaged(&|bytes| *bytes.last_mut().unwrap() ^= 1), Ok(4));
    assert_eq!(damaged(&|bytes| bytes.extend([0; 4096])), Ok(5));
    assert_eq!(damaged(&|bytes| bytes.extend(*b"not a record, but a text")), Ok(5));
    let foreign = refused(&|bytes| bytes[..8].copy_from_slice(b"notes of"));
    assert!(
        foreign.starts_with("log 1 was not read: the file begins with \"notes of\""),
        "{foreign}"
    );
    let version = refused(&|bytes| bytes[8] = 9);
    assert!(version.contains("version 9 of the format"), "{version}");
    let header = refused(&|bytes| bytes[21] ^= 1);
    assert!(header.contains("restore the file, or move it away"), "{header}");
}

#[test]
fn a_log_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), SyncPolicy::OnRequest).unwrap());
    let logs = LogFolder::open(folder.path()).unwrap();
    // A folder in the place of a log.
    std::fs::create_dir(logs.file(2)).unwrap();
    let error = open(folder.path(), SyncPolicy::OnRequest).unwrap_err();
    assert!(error.starts_with("log 2 could not be read: "), "{error}");
    let read = silvics_memtable::log::recover_logs(&logs, "x", |_| Ok::<(), String>(()));
    assert!(matches!(read, Err(RecoveryError::Log(_))));
    assert_eq!(logs.numbers().unwrap(), [1, 2]);
}

/// Two logs with synced writes, of which the first one is damaged: the second one stays, unless the
/// caller wants to lose it.
#[test]
fn logs_behind_a_damaged_one_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let open = |drop_left_out| {
        let storage = Arc::new(LogFolder::open(folder.path()).unwrap());
        let options = BufferOptions { drop_left_out, ..BufferOptions::default() };
        WriteBuffer::<ByteIndex>::recover(options, storage)
    };
    let (buffer, _) = open(false).unwrap();
    let sync = WriteOptions { sync: true };
    let write = |buffer: &WriteBuffer, key: &[u8]| {
        let mut batch = WriteBatch::new();
        batch.put(key, b"value").unwrap();
        buffer.write(&batch, sync).unwrap();
    };
    write(&buffer, b"first");
    write(&buffer, b"second");
    buffer.switch().unwrap();
    write(&buffer, b"third");
    drop(buffer);
    let logs = LogFolder::open(folder.path()).unwrap();
    let intact = std::fs::read(logs.file(1)).unwrap();
    let mut damaged = intact.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(logs.file(1), damaged).unwrap();
    for _ in 0..2 {
        let error = open(false).unwrap_err().to_string();
        assert!(error.contains("the logs [2] do not continue those before them"), "{error}");
        assert!(error.contains("drop_left_out"), "{error}");
    }
    // The log is restored: nothing was lost.
    let copy = tempfile::tempdir().unwrap();
    for log in logs.numbers().unwrap() {
        let file = logs.file(log);
        std::fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    let restored = LogFolder::open(copy.path()).unwrap();
    std::fs::write(restored.file(1), intact).unwrap();
    let (buffer, _) =
        WriteBuffer::<ByteIndex>::recover(BufferOptions::default(), Arc::new(restored)).unwrap();
    assert!([&b"first"[..], b"second", b"third"].iter().all(|key| buffer.get(key).is_some()));
    let (buffer, recovery) = open(true).unwrap();
    assert_eq!((recovery.left_out, buffer.get(b"first").is_some()), (vec![2], true));
    assert_eq!((buffer.get(b"second"), buffer.get(b"third")), (None, None));
}
