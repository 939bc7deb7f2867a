// SPDX-License-Identifier: MIT OR Apache-2.0
//! The few messages of Perfetto's trace format that are written. Names and field numbers are those of
//! <https://github.com/google/perfetto/tree/main/protos/perfetto/trace>.
//!
//! prost's derive macro is not used: it enables other features of `syn`, which would compile half of the dependencies twice.

use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

/// Defines a message with its fields: the encoding, field number, name and type of each. Fields that are None or empty are
/// not written.
macro_rules! message {
    ($(#[$doc:meta])* $message:ident { $($encoding:ident $number:literal $field:ident: $ty:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $message { $(pub $field: $ty,)+ }

        impl Message for $message {
            fn encode_raw(&self, buf: &mut impl BufMut) {
                $(self.$field.iter().for_each(|value| encoding::$encoding::encode($number, value, buf));)+
            }

            fn encoded_len(&self) -> usize {
                let lengths = [
                    $(self.$field.iter().map(|value| encoding::$encoding::encoded_len($number, value)).sum::<usize>(),)+
                ];
                lengths.iter().sum()
            }

            // Messages are written and never read.
            fn merge_field(
                &mut self,
                tag: u32,
                wire_type: WireType,
                buf: &mut impl Buf,
                ctx: DecodeContext,
            ) -> Result<(), DecodeError> {
                encoding::skip_field(wire_type, tag, buf, ctx)
            }

            fn clear(&mut self) {
                *self = Self::default();
            }
        }
    };
}

message! {
    /// A file of packets.
    Trace { message 1 packet: Vec<TracePacket>, }
}
message! {
    /// One packet of the trace.
    TracePacket {
        uint64 8 timestamp: Option<u64>,
        uint32 10 trusted_packet_sequence_id: Option<u32>,
        message 11 track_event: Option<TrackEvent>,
        message 60 track_descriptor: Option<TrackDescriptor>,
    }
}
message! {
    /// A track of the timeline.
    TrackDescriptor {
        uint64 1 uuid: Option<u64>,
        string 2 name: Option<String>,
        message 3 process: Option<ProcessDescriptor>,
        message 4 thread: Option<ThreadDescriptor>,
        uint64 5 parent_uuid: Option<u64>,
        message 8 counter: Option<CounterDescriptor>,
    }
}
message! {
    /// The track is a process.
    ProcessDescriptor {
        int32 1 pid: Option<i32>,
        string 6 process_name: Option<String>,
    }
}
message! {
    /// The track is a thread.
    ThreadDescriptor {
        int32 1 pid: Option<i32>,
        int32 2 tid: Option<i32>,
        string 5 thread_name: Option<String>,
    }
}
message! {
    /// The track is a counter.
    CounterDescriptor { int32 3 unit: Option<i32>, }
}
message! {
    /// An event on a track.
    TrackEvent {
        message 4 debug_annotations: Vec<DebugAnnotation>,
        int32 9 event_type: Option<i32>,
        uint64 11 track_uuid: Option<u64>,
        string 22 categories: Option<String>,
        string 23 name: Option<String>,
        int64 30 counter_value: Option<i64>,
        fixed64 47 flow_ids: Vec<u64>,
    }
}
message! {
    /// An argument.
    DebugAnnotation {
        int64 4 int_value: Option<i64>,
        string 6 string_value: Option<String>,
        string 10 name: Option<String>,
    }
}

/// `TrackEvent.Type`.
pub mod event_type {
    pub const SLICE_BEGIN: i32 = 1;
    pub const SLICE_END: i32 = 2;
    pub const COUNTER: i32 = 4;
}

/// `CounterDescriptor.Unit`.
pub mod unit {
    pub const COUNT: i32 = 2;
    pub const SIZE_BYTES: i32 = 3;
}
