// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Android package of a process, by the user that it runs as.

use mostrace_bundle::Packages;

use mostrace_trace::text::escape;

/// Number of the packages sharing a user that are named.
const NAMED: usize = 3;

/// Returns the package of a user, or the packages that share it; for a system user without one, Android's name of that user.
/// None if neither is known.
pub(crate) fn package(packages: &Packages, uid: u32) -> Option<String> {
    let app = packages.app(uid)?;
    let Some(names) = packages.of_user(app) else {
        return system_user(app).map(str::to_owned);
    };
    let mut named: Vec<String> = names.iter().take(NAMED).map(|name| escape(name)).collect();
    if let Some(more @ 1..) = names.len().checked_sub(NAMED) {
        named.push(format!("+{more}"));
    }
    Some(named.join(","))
}

/// The numbers and names of Android's system users (android_filesystem_config.h).
const SYSTEM_USERS: &str = "\
    0 root 1000 system 1001 radio 1002 bluetooth 1003 graphics 1004 input 1005 audio 1006 camera 1007 log 1009 mount \
    1010 wifi 1011 adb 1012 install 1013 media 1014 dhcp 1016 vpn 1017 keystore 1018 usb 1019 drm 1020 mdnsr \
    1021 gps 1023 media_rw 1024 mtp 1027 nfc 1029 clat 1031 mediadrm 1036 logd 1037 shared_relro 1040 mediaex \
    1041 audioserver 1045 debuggerd 1046 mediacodec 1047 cameraserver 1051 dns 1052 dns_tether 1053 webview_zygote \
    1054 vehicle_network 1058 tombstoned 1060 ese 1061 ota_update 1062 automotive_evs 1063 lowpan 1064 hsm \
    1066 statsd 1067 incidentd 1068 secure_element 1069 lmkd 1070 llkd 1071 iorapd 1072 gpu_service \
    1073 network_stack 1074 gsid 1075 fsverity_cert 1076 credstore 1080 context_hub 1081 virtualizationservice \
    1082 artd 1083 uwb 1084 thread_network 1085 diced 1086 dmesgd 1092 prng_seeder 2000 shell 2001 cache 2002 diag \
    9999 nobody";

/// Returns the user's name in android_filesystem_config.h, for users that processes run as.
fn system_user(uid: u32) -> Option<&'static str> {
    let mut words = SYSTEM_USERS.split_whitespace();
    words.find(|word| word.parse() == Ok(uid))?;
    words.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_an_app_or_apps_or_the_systems() {
        let packages = Packages::parse(
            b"com.example.a 10001\ncom.example.d 10002\ncom.example.c 10002\ncom.example.b 10002\ncom.example.e 10002\n\
              android 1000\ncom.\xff\x1b[31m\xe2\x80\xae 10003\ncom.example.c 99002\n",
        );
        for (uid, name) in [
            (10001, Some("com.example.a")),
            // It is the same app with another person.
            (11 * 100_000 + 10001, Some("com.example.a")),
            (10002, Some("com.example.b,com.example.c,com.example.d,+1")),
            // The list takes precedence over the number's own name.
            (1000, Some("android")),
            (1013, Some("media")),
            (10 * 100_000 + 2000, Some("shell")),
            (0, Some("root")),
            (10003, Some("com.\\xff\\x1b[31m\\xe2\\x80\\xae")),
            // An isolated process is its app's, and that of an unknown app nobody's.
            (99_002, Some("com.example.b,com.example.c,com.example.d,+1")),
            // The uid is neither in the list nor the system's.
            (10004, None),
            (99_001, None),
            (u32::MAX, None),
        ] {
            assert_eq!(package(&packages, uid).as_deref(), name, "{uid}");
        }
    }
}
