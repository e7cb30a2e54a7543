//! Databases that are kept in a folder.

use super::engine::{self, Engine};
use super::plan::{Phase, Plan};
use crate::flags::error::Error;
use crate::progress;
use silvics_store::durability::{Durability, Recovery};
use silvics_workload::tpcc::Scale;
use std::fmt;
use std::path::Path;

fn refused(problem: impl fmt::Display) -> Error {
    Error::value("--data", problem)
}

/// Opens the folder of a database.
pub fn folder(path: &Path) -> Result<Durability, Error> {
    let failed = |error| refused(format_args!("{}: {error}", path.display()));
    Durability::folder(path).map_err(failed)
}

/// Whether a folder has logs or checkpoints.
fn holds_database(durability: &Durability, path: &Path) -> Result<bool, Error> {
    let failed = |error| refused(format_args!("{}: {error}", path.display()));
    let logs = durability.logs.numbers().map_err(failed)?;
    let checkpoints = durability.checkpoints.numbers().map_err(failed)?;
    Ok(!logs.is_empty() || !checkpoints.is_empty())
}

/// Opens the database on which a run or a check works, if it is kept in a folder, and takes its
/// scale.
pub fn open(plan: &mut Plan) -> Result<Option<Box<dyn Engine>>, Error> {
    let Some(path) = plan.data.clone() else { return Ok(None) };
    let place = path.display();
    let has_database = path.exists() && holds_database(&folder(&path)?, &path)?;
    if plan.phase == Phase::Load {
        return if has_database {
            Err(refused(format_args!("{place} holds a database: remove it, or use `tpcc run`")))
        } else {
            Ok(None)
        };
    }
    if !has_database {
        return Err(refused(format_args!("{place} holds no database: use `tpcc load` first")));
    }
    let (engine, recovery) = engine::make(&plan.contenders[0], Some(&path))?;
    let recovery = recovery.unwrap_or_default();
    if recovery.checkpoint.is_none() {
        return Err(refused(format_args!(
            "the load of {place} has not ended: remove the folder, and load it again"
        )));
    }
    progress::note(&recovered(&recovery));
    if !recovery.left_out.is_empty() {
        let logs = &recovery.left_out;
        progress::note(&format!(
            "the medium has lost a part of the log: the logs {logs:?} behind it were left out"
        ));
    }
    plan.scale = scale(plan, engine.scale())?;
    Ok(Some(engine))
}

/// The sentence on a recovery.
fn recovered(recovery: &Recovery) -> String {
    let seconds = recovery.took.as_secs_f64();
    let bytes = recovery.checkpoint_bytes + recovery.log_bytes;
    format!(
        "recovered {} rows in {seconds:.2} s: {} rows of a checkpoint and {} transactions of the \
         log, {:.0} MB, {:.0} MB/s",
        recovery.rows,
        recovery.checkpoint_rows,
        recovery.records,
        bytes as f64 / 1e6,
        bytes as f64 / 1e6 / seconds.max(1e-9)
    )
}

/// The scale of a database, if it is one that was asked for.
fn scale(plan: &Plan, (warehouses, items, customers): (u32, u32, u32)) -> Result<Scale, Error> {
    if plan.names_warehouses && plan.scale.warehouses() != warehouses {
        let problem = format!(
            "the database has {warehouses} warehouses: name as many, or leave the flag out"
        );
        return Err(Error::value("--warehouses", problem));
    }
    let scales = [Scale::new, Scale::reduced].map(|of| of(warehouses));
    let same = |scale: &Scale| (scale.items(), scale.customers()) == (items, customers);
    scales.into_iter().flatten().find(same).ok_or_else(|| {
        refused(format_args!(
            "the database has {items} items and {customers} customers in a district, and is none \
             of TPC-C: load another folder"
        ))
    })
}
