//! An ordered map with byte keys for Valkey and Redis.
