//! Quantities as scenario files spell them: `"100 Mbit/s"`, `"15 ms"`, `"64 KiB"`.
