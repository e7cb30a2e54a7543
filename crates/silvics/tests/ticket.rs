//! The conformance suite of `silvics-testkit` on `ticket` in all its builds.

use silvics::bst::build::{Baseline, Fixed};
use silvics::{Pooled, Shared, TicketTree};
use silvics_testkit::index_suite;

index_suite!(ticket_pooled, TicketTree<Pooled>, scans);
index_suite!(ticket_shared, TicketTree<Shared>, scans);
index_suite!(ticket_fixed_pooled, TicketTree<Pooled, Fixed>, scans);
index_suite!(ticket_fixed_shared, TicketTree<Shared, Fixed>, scans);
index_suite!(ticket_baseline_pooled, TicketTree<Pooled, Baseline>, scans);
index_suite!(ticket_baseline_shared, TicketTree<Shared, Baseline>, scans);
