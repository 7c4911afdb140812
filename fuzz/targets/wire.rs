#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| eldest_fuzz::wire(bytes));
