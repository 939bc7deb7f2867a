// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two forms of probes, which are compiled from one source.
//!
//! In the first form of the probes for entries and for events, pointers have the types of the kernel's own BTF, so that fields can be
//! loaded directly; libbpf loads this form only if the kernel has BTF. The second form copies what it reads and can use any BTF of
//! the kernel, such as a file's (`--btf`) if the kernel was built without.
//!
//! The probes for causes and for operations have a second form for kernels before 5.17, which reject a program with a callback even
//! if it is not called.

/// Makes a module with both forms of a source: their names and skeletons, and the fields of their constants.
macro_rules! forms {
    (
        $module:ident, [$one:ident: $skeleton:literal, $other:ident: $second:literal],
        $builder:ident, $open:ident, [$($field:ident),*]
    ) => {
        pub(super) mod $module {
            use std::mem::{MaybeUninit, offset_of};
            use std::path::Path;

            use libbpf_rs::OpenObject;
            use libbpf_rs::skel::{OpenSkel, SkelBuilder};

            use crate::error::{Error, Result};

            pub mod $one {
                #![allow(missing_docs, unsafe_code, clippy::all)]
                include!(concat!(env!("OUT_DIR"), "/", $skeleton));
            }

            pub mod $other {
                #![allow(missing_docs, unsafe_code, clippy::all)]
                include!(concat!(env!("OUT_DIR"), "/", $second));
            }

            /// The constants of both forms, which are filled in before the forms are loaded.
            pub use $one::types::rodata as Constants;
            use $other::types::rodata as Others;

            // Both forms are made from one declaration.
            const _: () = {
                assert!(size_of::<Constants>() == size_of::<Others>());
                $(assert!(offset_of!(Constants, $field) == offset_of!(Others, $field));)*
            };

            /// Probes of either form that are not yet loaded.
            pub trait Form<'o>: OpenSkel<'o> {
                /// Returns the constants.
                ///
                /// # Errors
                /// Returns an error if the skeleton has no place for them.
                fn constants(&mut self) -> Result<&mut Constants>;
            }

            fn missing() -> Error {
                Error::bpf("skeleton without rodata")
            }

            impl<'o> Form<'o> for $one::$open<'o> {
                fn constants(&mut self) -> Result<&mut Constants> {
                    self.maps.rodata_data.as_deref_mut().ok_or_else(missing)
                }
            }

            impl<'o> Form<'o> for $other::$open<'o> {
                #[allow(unsafe_code)]
                fn constants(&mut self) -> Result<&mut Constants> {
                    let others = self.maps.rodata_data.as_deref_mut();
                    let others: *mut Others = others.ok_or_else(missing)?;
                    // SAFETY: both forms have the same fields at the same places, as asserted above.
                    Ok(unsafe { &mut *others.cast::<Constants>() })
                }
            }

            /// Opens the first form.
            ///
            /// # Errors
            /// Returns an error if libbpf refuses it.
            pub fn $one<'o>(
                storage: &'o mut MaybeUninit<OpenObject>,
            ) -> Result<$one::$open<'o>> {
                let builder = $one::$builder::default();
                builder.open(storage).map_err(Error::bpf)
            }

            /// Opens the second form, with the kernel's own types or those of a file.
            ///
            /// # Errors
            /// Returns an error if libbpf refuses it.
            pub fn $other<'o>(
                storage: &'o mut MaybeUninit<OpenObject>,
                btf: Option<&Path>,
            ) -> Result<$other::$open<'o>> {
                let mut builder = $other::$builder::default();
                if let Some(btf) = btf {
                    let object = builder.object_builder_mut();
                    object.btf_custom_path(btf).map_err(Error::bpf)?;
                }
                builder.open(storage).map_err(Error::bpf)
            }
        }
    };
}

forms!(
    entries,
    [typed: "mostrace.skel.rs", untyped: "mostrace_untyped.skel.rs"],
    MostraceSkelBuilder,
    OpenMostraceSkel,
    [
        target,
        filesystems,
        mount_calls,
        symbols,
        args,
        complete_has_errno,
        above,
        beside,
        target_start,
        page_shift,
        trace_completion_bit,
        size_lags,
        tells_direct,
        tells_writing,
        blind
    ]
);

forms!(
    events,
    [typed: "events.skel.rs", untyped: "events_untyped.skel.rs"],
    EventsSkelBuilder,
    OpenEventsSkel,
    [target, args, complete_has_errno, has_requests]
);

forms!(
    causes,
    [looped: "causes.skel.rs", loopless: "causes_loopless.skel.rs"],
    CausesSkelBuilder,
    OpenCausesSkel,
    [
        target,
        filesystems,
        symbols,
        args,
        target_start,
        page_shift,
        call_kinds,
        read_number,
        tells_stacks,
        uring_submit_at,
        uring_has_cqe
    ]
);

forms!(
    operations,
    [looped: "operations.skel.rs", loopless: "operations_loopless.skel.rs"],
    OperationsSkelBuilder,
    OpenOperationsSkel,
    [
        filesystems,
        page_shift,
        call_shapes,
        close_number,
        ring_calls,
        fdatasync_number,
        ring_submit_at,
        ring_has_cqe
    ]
);
