//! The macros that make lists of the table's rows.

/// Calls a macro for each build of each structure with each type of keys:
/// `for_each_index!(callback)` expands to `callback! { structure build keys runs capability faults
/// Type }` for each. All but the type are identifiers: `keys` is `u64_keys`, `u128_keys` or
/// `byte_keys`; `capability` is `points`, `scans`, `ends`, `atomic` or `updates`, and `faults` the
/// capability that the suite of faults uses, or `none` for tests alone. `runs` is `full`, `suite`
/// for a build that the long tests of its structure leave out, `locked` for such a build whose
/// lookups write, since they take locks, `stress` for such a build whose tests run in release
/// builds alone, as `just stress` runs them, or `alias` for a build whose type is that of another
/// build, so that its tests would run twice.
#[macro_export]
macro_rules! for_each_index {
    ($($callback:tt)+) => { $crate::for_each_structure! { ($crate::__indexes) $($callback)+ } };
}

/// Declares nested modules `structure::build::keys`, and calls a macro in each, as
/// [`for_each_index!`] does, with the arguments from `runs` on.
#[macro_export]
macro_rules! structure_modules {
    ($($callback:tt)+) => { $crate::for_each_structure! { ($crate::__modules) $($callback)+ } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __indexes {
    ($callback:tt $({
        ident: $structure:ident, name: $name:literal, groups: $groups:tt, caps: $caps:ident,
        paper: $paper:literal, topology: $topology:literal, sync: $sync:literal,
        progress: $progress:literal, scans: $scans:literal, page: $page:literal,
        checked: $checked:literal, max_key_bytes: $max:expr,
        builds: { $({
            ident: $build:ident, name: $build_name:literal, oversights: $oversights:tt,
            runs: $runs:ident, faults: $faults:ident, types: { $($keys:ident: $index:ty,)+ }
        })+ }
    })+) => {
        $($($($crate::__index! { $callback $structure $build $keys $runs $caps $faults $index })+)+)+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __index {
    (($($callback:tt)+) $($index:tt)+) => { $($callback)+! { $($index)+ } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __modules {
    ($callback:tt $({
        ident: $structure:ident, name: $name:literal, groups: $groups:tt, caps: $caps:ident,
        paper: $paper:literal, topology: $topology:literal, sync: $sync:literal,
        progress: $progress:literal, scans: $scans:literal, page: $page:literal,
        checked: $checked:literal, max_key_bytes: $max:expr,
        builds: { $({
            ident: $build:ident, name: $build_name:literal, oversights: $oversights:tt,
            runs: $runs:ident, faults: $faults:ident, types: { $($keys:ident: $index:ty,)+ }
        })+ }
    })+) => {
        $(mod $structure {
            $(mod $build {
                $(mod $keys {
                    $crate::__index! { $callback $runs $caps $faults $index }
                })+
            })+
        })+
    };
}
