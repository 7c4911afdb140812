//! The API described for tools, as OpenAPI 3.1: what each route takes and answers. The routes are those of the table of needs, the codes
//! those of problems, and a test says what is missing here, or too much.

mod document;
mod operations;

pub use document::document;
