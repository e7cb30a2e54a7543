//! The databases of a contender.

use super::engine::Engine;
use super::ours::Ours;
use super::plan::{Logs, Plan};
use super::recorder::Recorder;
use super::traced::Traced;
use crate::catalogue::select;
use crate::flags::error::Error;
use crate::store::contenders::{ByPolicy, Contender, Make, lists};
use silvics_store::Policy;
use silvics_store::index::{Named, Scannable, Search};

/// Makes the empty database.
pub fn make(contender: &Contender, plan: &Plan) -> Result<Box<dyn Engine>, Error> {
    #[cfg(feature = "databases")]
    if contender.is_database() {
        return super::databases::make(&contender.index, &plan.job);
    }
    contender.with_policy(Measured { contender, plan })
}

/// Makes the empty store, with an index whose reads are recorded.
pub fn make_recorded(contender: &Contender, plan: &Plan) -> Result<Box<dyn Traced>, Error> {
    contender.with_policy(Recorded { contender, plan })
}

/// The constructor of an index of the catalogue whose reads are recorded.
pub fn recorder(contender: &Contender) -> Result<Make<Recorder>, Error> {
    let name = contender.structure();
    let chosen = select::resolve(&name, None)?;
    let maker = chosen.first().and_then(|chosen| chosen.inspect::<u64>(contender.place));
    let Some(make) = maker else {
        let index = &contender.index;
        let problem = format!("the reads of `{index}` cannot be recorded: leave it out");
        return Err(Error::value("--model", problem));
    };
    Ok(Box::new(move |options| Ok(Recorder::made(name.clone(), make, options)?)))
}

fn store<P: Policy, I: Scannable + Search<Form = u64>>(
    contender: &Contender,
    plan: &Plan,
    make: Make<I>,
) -> Result<Box<Ours<P, I>>, Error> {
    let log = plan.log.as_ref().map(Logs::next).transpose()?;
    Ok(Box::new(Ours::<P, I>::new(&plan.job, (&contender.options(), log), make)?))
}

/// Makes the stores that are measured.
struct Measured<'a> {
    contender: &'a Contender,
    plan: &'a Plan,
}

impl ByPolicy for Measured<'_> {
    type Made = Box<dyn Engine>;

    fn direct<P: Policy, I: Scannable + Search<Form = u64>>(
        self,
        index: Make<I>,
    ) -> Result<Box<dyn Engine>, Error> {
        Ok(store::<P, I>(self.contender, self.plan, index)?)
    }

    fn named<P: Policy>(self, index: Make<Named<u64>>) -> Result<Box<dyn Engine>, Error> {
        Ok(store::<P, _>(self.contender, self.plan, index)?)
    }

    fn listed<P: Policy>(self) -> Result<Box<dyn Engine>, Error> {
        let Self { contender, plan } = self;
        Ok(store::<P, _>(contender, plan, lists(contender.named()))?)
    }
}

/// Makes the stores whose indexes record their reads.
struct Recorded<'a> {
    contender: &'a Contender,
    plan: &'a Plan,
}

impl ByPolicy for Recorded<'_> {
    type Made = Box<dyn Traced>;

    fn direct<P: Policy, I: Scannable + Search<Form = u64>>(
        self,
        _index: Make<I>,
    ) -> Result<Box<dyn Traced>, Error> {
        Ok(store::<P, _>(self.contender, self.plan, recorder(self.contender)?)?)
    }

    fn named<P: Policy>(self, index: Make<Named<u64>>) -> Result<Box<dyn Traced>, Error> {
        self.direct::<P, _>(index)
    }

    fn listed<P: Policy>(self) -> Result<Box<dyn Traced>, Error> {
        let Self { contender, plan } = self;
        let make = recorder(contender)?;
        let make: Make<Recorder> = Box::new(move |options| make(options).map(Recorder::of_lists));
        Ok(store::<P, _>(contender, plan, lists(make))?)
    }
}
