//! Facts from the system about the machine and about this process.
//!
//! | module | holds |
//! |---|---|
//! | `alloc` | the global allocator that the command was built with |
//! | `counters` | counters of the processor and of the system, read around a run |
//! | `facts` | the facts in which two runs may differ |
//! | `machine` | the processor, the system and their names, for reports |
//! | `proc` | the files in which the system describes itself, read |
//! | `memory` | the resident memory of this process, and the pages that it lies on |
//! | `switches` | the context switches of a thread |

pub mod alloc;
pub mod counters;
pub mod facts;
pub mod machine;
pub mod memory;
pub mod proc;
pub mod switches;
