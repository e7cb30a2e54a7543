//! The commands of a map: those of the module, or those of the server's own hashes.

use redis::{Cmd, cmd};

/// The type that the maps have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commands {
    /// The ordered maps of the module.
    Maps,
    /// Hashes, as a control: the same rounds without the module.
    Hashes,
}

impl Commands {
    pub(crate) fn set(self, map: &str, key: &[u8], value: &[u8]) -> Cmd {
        let mut command = cmd(self.pick("OM.SET", "HSET"));
        command.arg(map).arg(key).arg(value);
        command
    }

    pub(crate) fn get(self, map: &str, key: &[u8]) -> Cmd {
        let mut command = cmd(self.pick("OM.GET", "HGET"));
        command.arg(map).arg(key);
        command
    }

    pub(crate) fn del(self, map: &str, key: &[u8]) -> Cmd {
        let mut command = cmd(self.pick("OM.DEL", "HDEL"));
        command.arg(map).arg(key);
        command
    }

    pub(crate) fn len(self, map: &str) -> Cmd {
        let mut command = cmd(self.pick("OM.LEN", "HLEN"));
        command.arg(map);
        command
    }

    /// All entries at once, of hashes only: a map is scanned.
    pub(crate) fn whole_hash(map: &str) -> Cmd {
        let mut command = cmd("HGETALL");
        command.arg(map);
        command
    }

    fn pick(self, maps: &'static str, hashes: &'static str) -> &'static str {
        match self {
            Self::Maps => maps,
            Self::Hashes => hashes,
        }
    }
}
