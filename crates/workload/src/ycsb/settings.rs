//! The settings of YCSB's core workload, read from properties.

use super::{Origin, Properties, PropertyError};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The most records of a workload. The seeds and the hash of keys are made for this range.
pub const RECORDS_MAX: u64 = 1 << 32;

/// The classes of YCSB that this module implements.
const CLASSES: [&str; 2] =
    ["site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload"];

/// The distribution from which requests choose records: `requestdistribution`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestDist {
    /// `uniform`: all loaded records with equal probability.
    Uniform,
    /// `zipfian`: Zipf's law, with the hot records scattered over the table.
    Zipfian,
    /// `latest`: Zipf's law by age. The youngest record is the hottest.
    Latest,
    /// `sequential`: the loaded records one after another, again and again.
    Sequential,
    /// `hotspot`: a share of the operations goes to a share of the records.
    Hotspot {
        /// `hotspotdatafraction`: the share of records that are hot, those with the lowest numbers.
        data: f64,
        /// `hotspotopnfraction`: the share of operations that go to hot records.
        ops: f64,
    },
    /// `exponential`: by age, with probabilities that fall exponentially.
    Exponential {
        /// `exponential.percentile`: the percentage of operations that go to young records.
        percentile: f64,
        /// `exponential.frac`: the share of records that are young.
        fraction: f64,
    },
}

/// The distribution of the lengths of scans: `scanlengthdistribution`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanLengthDist {
    /// `uniform`: all lengths with equal probability.
    Uniform,
    /// `zipfian`: Zipf's law. The shortest scan is the most frequent.
    Zipfian,
}

/// The distribution of the lengths of fields: `fieldlengthdistribution`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldLengthDist {
    /// `constant`: all fields have the length `fieldlength`.
    Constant,
    /// `uniform`: all lengths from `minfieldlength` to `fieldlength` with equal probability.
    Uniform,
    /// `zipfian`: Zipf's law over these lengths. The shortest is the most frequent.
    Zipfian,
}

/// The order of keys: `insertorder`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOrder {
    /// `hashed`: keys are hashes of record numbers, so inserts go to random places.
    Hashed,
    /// `ordered`: keys are record numbers, so inserts go to the end.
    Ordered,
}

/// The shares of the kinds of operations. They sum to 1, up to one millionth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proportions {
    /// `readproportion`.
    pub read: f64,
    /// `updateproportion`.
    pub update: f64,
    /// `insertproportion`.
    pub insert: f64,
    /// `scanproportion`.
    pub scan: f64,
    /// `readmodifywriteproportion`.
    pub read_modify_write: f64,
}

/// The settings of a workload.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// `table`: the name of the table.
    pub table: String,
    /// `recordcount`: the number of records before the run.
    pub records: u64,
    /// `operationcount`: the number of operations of the run. None (0 in the file) is no limit.
    /// Zipfian requests expect inserts by it: without it, they choose at most one inserted record.
    pub operations: Option<u64>,
    /// `fieldcount`: the number of fields of a record.
    pub fields: u32,
    /// `fieldlength`: the length of the longest field, in bytes.
    pub field_bytes: u32,
    /// `minfieldlength`: the length of the shortest field, in bytes. It equals `field_bytes` if
    /// lengths are constant.
    pub field_bytes_min: u32,
    /// `fieldlengthdistribution`: the distribution of lengths of fields.
    pub field_length_dist: FieldLengthDist,
    /// `readallfields`: whether reads and scans read all fields instead of one.
    pub read_all_fields: bool,
    /// `writeallfields`: whether updates write all fields instead of one.
    pub write_all_fields: bool,
    /// The shares of the kinds of operations.
    pub proportions: Proportions,
    /// `requestdistribution`: the distribution of requests.
    pub request_dist: RequestDist,
    /// `minscanlength`: the length of the shortest scan.
    pub scan_min: u32,
    /// `maxscanlength`: the length of the longest scan.
    pub scan_max: u32,
    /// `scanlengthdistribution`: the distribution of lengths of scans.
    pub scan_length_dist: ScanLengthDist,
    /// `insertorder`: whether keys are hashed.
    pub insert_order: InsertOrder,
    /// `insertstart`: the number of the first loaded record.
    pub insert_start: u64,
    /// `insertcount`: the number of loaded records.
    pub insert_count: u64,
    /// `zeropadding`: the least number of digits of a key.
    pub zero_padding: u32,
    /// `threadcount`: the number of threads. None if it is not set.
    pub threads: Option<u32>,
    /// `target`: the operations per second that all threads together aim at. None is no limit.
    pub target: Option<u64>,
    /// `maxexecutiontime`: the seconds after which the run ends. None is no limit.
    pub seconds: Option<u64>,
    /// The properties that have no meaning here. YCSB ignores such properties, too.
    pub notes: Vec<Note>,
}

/// A property that has no meaning here. It may be misspelt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The name of the property.
    pub name: String,
    /// The place.
    pub origin: Origin,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the property `{}` ({}) has no meaning here and is ignored",
            self.name, self.origin
        )
    }
}

impl Settings {
    /// Reads the settings.
    pub fn from_properties(properties: &Properties) -> Result<Self, PropertyError> {
        let from = Reader { properties };
        from.choice("workload", CLASSES[0], &CLASSES.map(|class| (class, ())))?;
        if properties.get("recordcount").is_none() {
            return Err(PropertyError::Missing { name: "recordcount", example: "1000000" });
        }
        let records = from.number("recordcount", 0, 1..=RECORDS_MAX)?;
        let insert_start = from.number("insertstart", 0, 0..=records - 1)?;
        let rest = records - insert_start;
        let scan_max = from.number("maxscanlength", 1000, 1..=u32::MAX)?;
        let (field_bytes, field_bytes_min, field_length_dist) = from.field_lengths()?;
        Ok(Self {
            table: from.text("table", "usertable").0.to_owned(),
            records,
            operations: from.limit("operationcount")?,
            fields: from.number("fieldcount", 10, 1..=1 << 16)?,
            field_bytes,
            field_bytes_min,
            field_length_dist,
            read_all_fields: from.flag("readallfields", true)?,
            write_all_fields: from.flag("writeallfields", false)?,
            proportions: from.proportions()?,
            request_dist: from.request_dist()?,
            scan_min: from.number("minscanlength", 1, 1..=scan_max)?,
            scan_max,
            scan_length_dist: from.choice(
                "scanlengthdistribution",
                "uniform",
                &[("uniform", ScanLengthDist::Uniform), ("zipfian", ScanLengthDist::Zipfian)],
            )?,
            insert_order: from.choice(
                "insertorder",
                "hashed",
                &[("hashed", InsertOrder::Hashed), ("ordered", InsertOrder::Ordered)],
            )?,
            insert_start,
            insert_count: from.number("insertcount", rest, 1..=rest)?,
            zero_padding: from.number("zeropadding", 1, 0..=1000)?,
            threads: match properties.get("threadcount") {
                Some(_) => Some(from.number("threadcount", 1, 1..=1 << 16)?),
                None => None,
            },
            target: from.limit("target")?,
            seconds: from.limit("maxexecutiontime")?,
            notes: notes(properties),
        })
    }
}

/// The names of all properties that have a meaning.
const KNOWN: [&str; 30] = [
    "exponential.frac",
    "exponential.percentile",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "insertcount",
    "insertorder",
    "insertproportion",
    "insertstart",
    "maxexecutiontime",
    "maxscanlength",
    "minfieldlength",
    "minscanlength",
    "operationcount",
    "readallfields",
    "readmodifywriteproportion",
    "readproportion",
    "recordcount",
    "requestdistribution",
    "scanlengthdistribution",
    "scanproportion",
    "table",
    "target",
    "threadcount",
    "updateproportion",
    "workload",
    "writeallfields",
    "zeropadding",
];

fn notes(properties: &Properties) -> Vec<Note> {
    let unknown = properties.iter().filter(|(name, _)| !KNOWN.contains(name));
    unknown
        .map(|(name, property)| Note { name: name.into(), origin: property.origin.clone() })
        .collect()
}

struct Reader<'a> {
    properties: &'a Properties,
}

impl Reader<'_> {
    /// The value of a property and its place.
    fn text<'a>(&'a self, name: &str, default: &'a str) -> (&'a str, Origin) {
        match self.properties.get(name) {
            Some(property) => (&property.value, property.origin.clone()),
            None => (default, Origin::Default),
        }
    }

    fn wrong(&self, name: &'static str, remedy: String) -> PropertyError {
        let (value, origin) = self.text(name, "");
        PropertyError::Value { name, value: value.to_owned(), origin, remedy }
    }

    /// A whole number in a range.
    fn number<T>(
        &self,
        name: &'static str,
        default: T,
        range: RangeInclusive<T>,
    ) -> Result<T, PropertyError>
    where
        T: Copy + FromStr + PartialOrd + fmt::Display,
    {
        let Some(property) = self.properties.get(name) else { return Ok(default) };
        match property.value.parse() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => {
                let (least, most) = (range.start(), range.end());
                Err(self.wrong(name, format!("write a whole number from {least} to {most}")))
            }
        }
    }

    /// A whole number, where 0 is no limit.
    fn limit(&self, name: &'static str) -> Result<Option<u64>, PropertyError> {
        let number = self.number(name, 0, 0..=i64::MAX as u64)?;
        Ok((number > 0).then_some(number))
    }

    /// A number with decimals that `accepts` accepts.
    fn real(
        &self,
        name: &'static str,
        default: f64,
        accepts: impl Fn(f64) -> bool,
        remedy: &str,
    ) -> Result<f64, PropertyError> {
        let Some(property) = self.properties.get(name) else { return Ok(default) };
        match property.value.parse::<f64>() {
            Ok(number) if accepts(number) => Ok(number.abs()), // -0 is 0
            _ => Err(self.wrong(name, remedy.to_owned())),
        }
    }

    fn fraction(&self, name: &'static str, default: f64) -> Result<f64, PropertyError> {
        let accepts = |number| (0.0..=1.0).contains(&number);
        self.real(name, default, accepts, "write a number from 0 to 1")
    }

    fn flag(&self, name: &'static str, default: bool) -> Result<bool, PropertyError> {
        let (text, _) = self.text(name, if default { "true" } else { "false" });
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong(name, "write true or false".into())),
        }
    }

    /// One of several names.
    fn choice<T: Copy>(
        &self,
        name: &'static str,
        default: &str,
        choices: &[(&str, T)],
    ) -> Result<T, PropertyError> {
        let (text, _) = self.text(name, default);
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(*choice);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let remedy = match names.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("write {} or {last}", others.join(", "))
            }
            _ => format!("write {}", names.concat()),
        };
        Err(self.wrong(name, remedy))
    }

    fn field_lengths(&self) -> Result<(u32, u32, FieldLengthDist), PropertyError> {
        let dist = self.choice(
            "fieldlengthdistribution",
            "constant",
            &[
                ("constant", FieldLengthDist::Constant),
                ("uniform", FieldLengthDist::Uniform),
                ("zipfian", FieldLengthDist::Zipfian),
            ],
        )?;
        let most = self.number("fieldlength", 100, 1..=1 << 24)?;
        let constant = dist == FieldLengthDist::Constant;
        let bound = if constant { 1 << 24 } else { most };
        let least = self.number("minfieldlength", 1, 0..=bound)?;
        Ok((most, if constant { most } else { least }, dist))
    }

    fn request_dist(&self) -> Result<RequestDist, PropertyError> {
        let hotspot = RequestDist::Hotspot {
            data: self.fraction("hotspotdatafraction", 0.2)?,
            ops: self.fraction("hotspotopnfraction", 0.8)?,
        };
        let exponential = RequestDist::Exponential {
            percentile: self.real(
                "exponential.percentile",
                95.0,
                |number| number > 0.0 && number < 100.0,
                "write a number between 0 and 100",
            )?,
            fraction: self.real(
                "exponential.frac",
                0.857_142_857_1,
                |number| number > 0.0 && number <= 1.0,
                "write a number above 0, at most 1",
            )?,
        };
        self.choice(
            "requestdistribution",
            "uniform",
            &[
                ("uniform", RequestDist::Uniform),
                ("zipfian", RequestDist::Zipfian),
                ("latest", RequestDist::Latest),
                ("sequential", RequestDist::Sequential),
                ("hotspot", hotspot),
                ("exponential", exponential),
            ],
        )
    }

    fn proportions(&self) -> Result<Proportions, PropertyError> {
        const NAMES: [(&str, f64); 5] = [
            ("readproportion", 0.95),
            ("updateproportion", 0.05),
            ("insertproportion", 0.0),
            ("scanproportion", 0.0),
            ("readmodifywriteproportion", 0.0),
        ];
        let mut shares = [0.0; 5];
        for (share, (name, default)) in shares.iter_mut().zip(NAMES) {
            *share = self.fraction(name, default)?;
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            let parts = NAMES.iter().zip(shares).filter(|&(_, share)| share > 0.0);
            let parts = parts.map(|(&(name, _), share)| (name, share, self.text(name, "").1));
            // Without the noise of binary fractions.
            let sum = (sum * 1e9).round() / 1e9;
            return Err(PropertyError::Proportions { sum, parts: parts.collect() });
        }
        let [read, update, insert, scan, read_modify_write] = shares;
        Ok(Proportions { read, update, insert, scan, read_modify_write })
    }
}
