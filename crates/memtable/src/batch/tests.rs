//! Tests of batches and of their byte form.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Owned(u8, Vec<u8>, Vec<u8>);

impl Owned {
    fn op(&self) -> Op<'_> {
        match self.0 {
            0 => Op::Put { key: &self.1, value: &self.2 },
            1 => Op::Delete { key: &self.1 },
            _ => Op::DeleteRange { from: &self.1, to: &self.2 },
        }
    }
}

fn operations() -> impl Strategy<Value = Vec<Owned>> {
    let string = || proptest::collection::vec(any::<u8>(), 0..300);
    let op = (0..3_u8, string(), string());
    proptest::collection::vec(op.prop_map(|(kind, a, b)| Owned(kind, a, b)), 0..12)
}

/// Parses, and checks that the operations, added to a new batch, give the same bytes.
fn parse_and_write_again(count: u32, bytes: &[u8]) -> Result<(), ParseError> {
    let batch = WriteBatch::parse(count, bytes)?;
    let mut again = WriteBatch::new();
    for op in batch {
        again.push(op).unwrap();
    }
    assert_eq!(again.view(), batch);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn operations_are_read_as_they_were_added(ops in operations()) {
        let mut batch = WriteBatch::new();
        for op in &ops {
            batch.push(op.op()).unwrap();
        }
        prop_assert!(batch.ops().eq(ops.iter().map(Owned::op)));
        prop_assert_eq!(batch.ops().len(), ops.len());
        prop_assert_eq!(WriteBatch::parse(batch.len(), batch.bytes()), Ok(batch.view()));
        for end in 0..batch.bytes().len() {
            prop_assert!(WriteBatch::parse(batch.len(), &batch.bytes()[..end]).is_err());
        }
        prop_assert!(WriteBatch::parse(batch.len() + 1, batch.bytes()).is_err());
    }

    #[test]
    fn any_bytes_are_refused_or_read(
        count in 0..4_u32,
        bytes in proptest::collection::vec(prop_oneof![0..4_u8, Just(0x0F), any::<u8>()], 0..40),
    ) {
        if let Err(error) = parse_and_write_again(count, &bytes) {
            prop_assert!(error.offset <= bytes.len(), "{}", error);
        }
    }
}

#[test]
fn a_refused_operation_leaves_the_batch_unchanged() {
    let mut batch = WriteBatch::new();
    let key = vec![7; MAX_KEY_BYTES];
    batch.put(&key, b"").unwrap();
    let before = batch.clone();
    let long = [&key[..], b"!"].concat();
    let error = BatchError::KeyLength { bytes: long.len(), limit: MAX_KEY_BYTES };
    assert_eq!(batch.put(&long, b""), Err(error));
    assert_eq!(batch.delete(&long), Err(error));
    assert_eq!(batch.delete_range(b"", &long), Err(error));
    assert_eq!(batch.delete_range(&long, b""), Err(error));
    batch.count = u32::MAX;
    assert_eq!(batch.delete(b""), Err(BatchError::Count { limit: u32::MAX }));
    batch.count = before.count;
    assert_eq!(batch, before);
}

#[test]
#[cfg_attr(miri, ignore = "takes a GiB of memory")]
fn long_values_and_batches_are_refused() {
    // The system maps zeros without memory, and nothing reads them.
    let value = vec![0; MAX_VALUE_BYTES + 1];
    let mut batch = WriteBatch::new();
    let error = BatchError::ValueLength { bytes: value.len(), limit: MAX_VALUE_BYTES };
    assert_eq!(batch.put(b"", &value), Err(error));
    // The longest key and the longest value fit into one batch.
    let longest = 1 + 3 + MAX_KEY_BYTES + 5 + MAX_VALUE_BYTES;
    assert!((MAX_BATCH_BYTES - 16..=MAX_BATCH_BYTES).contains(&longest));
    let key = vec![0; MAX_KEY_BYTES];
    batch.delete(&key).unwrap();
    batch.delete(&key).unwrap();
    let before = batch.bytes().len();
    let put = 1 + 1 + 5 + MAX_VALUE_BYTES;
    let error = BatchError::BatchLength { bytes: before + put, limit: MAX_BATCH_BYTES };
    assert_eq!(batch.put(b"", &value[1..]), Err(error));
    assert_eq!((batch.bytes().len(), batch.len()), (before, 2));
}

#[test]
fn lengths_have_one_form() {
    for (number, len) in [(0, 1), (1, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3)] {
        assert_eq!(varint_len(number), len, "{number}");
    }
    assert_eq!((varint_len(MAX_VALUE_BYTES as u32), varint_len(u32::MAX)), (5, 5));
    let reason = |bytes| WriteBatch::parse(1, bytes).unwrap_err().reason;
    assert_eq!(reason(b"\x00\x80\x00"), ParseReason::Varint); // two bytes for 0
    assert_eq!(reason(b"\x00\xFF\xFF\xFF\xFF\x1F"), ParseReason::Varint); // 33 bits
    assert_eq!(reason(b"\x00\x80\x80\x80\x80\x80\x01"), ParseReason::Varint);
    assert_eq!(reason(b"\x00\x80\x80"), ParseReason::Short);
    assert_eq!(reason(b"\x02"), ParseReason::Kind(2));
}

#[test]
fn a_cleared_batch_keeps_its_memory() {
    let mut batch = WriteBatch::with_capacity(100).unwrap();
    batch.put(b"pine", b"evergreen").unwrap();
    let memory = batch.bytes().as_ptr();
    batch.clear();
    assert!(batch.is_empty() && batch.ops().next().is_none());
    batch.put(b"larch", b"deciduous").unwrap();
    assert_eq!(batch.bytes().as_ptr(), memory);
}

#[test]
fn errors_are_sentences() {
    let error = WriteBatch::parse(2, b"\x00\x01a").unwrap_err();
    assert_eq!(error.to_string(), "there are 1 operations, where 2 are announced");
    let error = WriteBatch::parse(0, b"\x00\x01a").unwrap_err();
    assert_eq!(error.to_string(), "more operations than the announced 0 begin at byte 0");
    let error = BatchError::KeyLength { bytes: 9, limit: 8 };
    let text = "a key of 9 bytes exceeds the limit of 8 bytes: shorten or hash it";
    assert_eq!(error.to_string(), text);
    let huge = WriteBatch::with_capacity(usize::MAX).unwrap_err();
    assert!(huge.to_string().starts_with("the system refused"), "{huge}");
}
