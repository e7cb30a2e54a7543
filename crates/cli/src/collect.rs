//! `silvics collect`: the parts of a campaign as one result.

use crate::bench;
use crate::campaign::Campaign;
use crate::campaign::collected::Parts;
use crate::flags::error::Error;
use crate::flags::shard::CollectArgs;
use crate::memtable;
use crate::reproduce;
use crate::store;

/// Collects parts, and prints what their verb prints. Returns the exit code.
pub fn collect(args: CollectArgs) -> Result<u8, Error> {
    let parts = Parts::read(&args)?;
    match &*parts.head().verb {
        bench::Parts::VERB => parts.report::<bench::Parts>(args),
        memtable::Parts::VERB => parts.report::<memtable::Parts>(args),
        reproduce::Parts::VERB => parts.report::<reproduce::Parts>(args),
        store::Ycsb::VERB => parts.report::<store::Ycsb>(args),
        store::Tpcc::VERB => parts.report::<store::Tpcc>(args),
        other => {
            let problem = format!(
                "has the verb `{other}`, which this version cannot collect: use \
                                   the version that measured it"
            );
            Err(Error::File { flag: "FILE", path: args.files[0].clone(), problem })
        }
    }
}
