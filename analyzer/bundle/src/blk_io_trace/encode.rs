// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes an event to bytes.

use super::action::BLK_TA_CGROUP;
use super::event::Event;
use super::record::{BlkIoTrace, BlkIoTrace2, Layout, Prefix, Version};
use zerocopy::IntoBytes;
use zerocopy::byteorder::{BE, ByteOrder, LE, U16, U32, U64};

/// The reason why an event cannot be written in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The action has bits above the 32 that v7 holds.
    #[error("the action has more than 32 bits, which a v7 record cannot hold")]
    Action,
    /// The cgroup id and the payload together are longer than 65,535 bytes.
    #[error("the payload is longer than 65,535 bytes")]
    Payload,
}

/// Appends the event to `out` as a record. On an error, `out` is unchanged.
///
/// # Errors
/// Returns an error if `layout` cannot hold the event.
pub fn encode(event: &Event<'_>, layout: Layout, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match layout.big_endian {
        false => encode_in::<LE>(event, layout.version, out)?,
        true => encode_in::<BE>(event, layout.version, out)?,
    }
    match event.timestamp() {
        Some(words) if event.big_endian != layout.big_endian => {
            for word in words {
                out.extend_from_slice(&match layout.big_endian {
                    false => word.to_le_bytes(),
                    true => word.to_be_bytes(),
                });
            }
            out.extend_from_slice(event.pdu.get(size_of_val(&words)..).unwrap_or_default());
        }
        _ => out.extend_from_slice(event.pdu),
    }
    Ok(())
}

/// Appends the record's head and, if the action has the flag, the cgroup id.
fn encode_in<O: ByteOrder>(
    e: &Event<'_>,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let cgroup = (e.action & BLK_TA_CGROUP != 0).then(|| U64::<O>::new(e.cgroup));
    let pdu_len = e
        .pdu
        .len()
        .saturating_add(cgroup.map_or(0, |c| size_of_val(&c)));
    let pdu_len = U16::new(u16::try_from(pdu_len).map_err(|_| EncodeError::Payload)?);
    let prefix = Prefix {
        magic: U32::new(version.magic()),
        sequence: U32::new(e.sequence),
        time: U64::new(e.time_ns),
    };
    match version {
        Version::V7 => out.extend_from_slice(
            BlkIoTrace::<O> {
                prefix,
                sector: U64::new(e.sector),
                bytes: U32::new(e.bytes),
                action: U32::new(u32::try_from(e.action).map_err(|_| EncodeError::Action)?),
                pid: U32::new(e.pid),
                device: U32::new(e.device),
                cpu: U32::new(e.cpu),
                error: U16::new(e.error),
                pdu_len,
            }
            .as_bytes(),
        ),
        Version::V8 => out.extend_from_slice(
            BlkIoTrace2::<O> {
                prefix,
                sector: U64::new(e.sector),
                bytes: U32::new(e.bytes),
                pid: U32::new(e.pid),
                action: U64::new(e.action),
                device: U32::new(e.device),
                cpu: U32::new(e.cpu),
                error: U16::new(e.error),
                pdu_len,
                pad: [0; 12],
            }
            .as_bytes(),
        ),
    }
    if let Some(cgroup) = cgroup {
        out.extend_from_slice(cgroup.as_bytes());
    }
    Ok(())
}
