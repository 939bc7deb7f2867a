// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two forms of the probes for entries and for events, which are compiled from one source. In one form, pointers have the types
//! of the kernel's own BTF, so that fields can be loaded directly; libbpf loads this form only if the kernel has BTF. The other
//! form copies what it reads and can use any BTF of the kernel, such as a file's (`--btf`) if the kernel was built without.

/// Makes a module with both forms of a source: their skeletons by name, and the fields of their constants.
macro_rules! forms {
    ($module:ident, $stem:literal, $builder:ident, $open:ident, [$($field:ident),*]) => {
        pub(super) mod $module {
            use std::mem::{MaybeUninit, offset_of};
            use std::path::Path;

            use libbpf_rs::OpenObject;
            use libbpf_rs::skel::{OpenSkel, SkelBuilder};

            use crate::error::{Error, Result};

            mod typed {
                #![allow(missing_docs, unsafe_code, clippy::all)]
                include!(concat!(env!("OUT_DIR"), "/", $stem, ".skel.rs"));
            }

            mod untyped {
                #![allow(missing_docs, unsafe_code, clippy::all)]
                include!(concat!(env!("OUT_DIR"), "/", $stem, "_untyped.skel.rs"));
            }

            /// The constants of both forms, which are filled in before the forms are loaded.
            pub use typed::types::rodata as Constants;
            use untyped::types::rodata as Others;

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

            impl<'o> Form<'o> for typed::$open<'o> {
                fn constants(&mut self) -> Result<&mut Constants> {
                    self.maps.rodata_data.as_deref_mut().ok_or_else(missing)
                }
            }

            impl<'o> Form<'o> for untyped::$open<'o> {
                #[allow(unsafe_code)]
                fn constants(&mut self) -> Result<&mut Constants> {
                    let others = self.maps.rodata_data.as_deref_mut();
                    let others: *mut Others = others.ok_or_else(missing)?;
                    // SAFETY: both forms have the same fields at the same places, as asserted above.
                    Ok(unsafe { &mut *others.cast::<Constants>() })
                }
            }

            /// Opens the form with the kernel's own types.
            ///
            /// # Errors
            /// Returns an error if libbpf refuses them.
            pub fn typed<'o>(
                storage: &'o mut MaybeUninit<OpenObject>,
            ) -> Result<impl Form<'o, Output: 'o> + use<'o>> {
                let builder = typed::$builder::default();
                builder.open(storage).map_err(Error::bpf)
            }

            /// Opens the form that takes its types from a file.
            ///
            /// # Errors
            /// Returns an error if libbpf refuses them.
            pub fn untyped<'o>(
                storage: &'o mut MaybeUninit<OpenObject>,
                btf: &Path,
            ) -> Result<impl Form<'o, Output: 'o> + use<'o>> {
                let mut builder = untyped::$builder::default();
                let object = builder.object_builder_mut();
                object.btf_custom_path(btf).map_err(Error::bpf)?;
                builder.open(storage).map_err(Error::bpf)
            }
        }
    };
}

forms!(
    entries,
    "mostrace",
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
    "events",
    EventsSkelBuilder,
    OpenEventsSkel,
    [target, args, complete_has_errno, has_requests]
);
