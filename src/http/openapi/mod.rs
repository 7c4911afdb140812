//! Describes the API for tools, as OpenAPI 3.1: what each route takes and answers. The routes are those of the table of needs, and the
//! codes are those of problems. A test finds routes and codes that are missing here, or that do not exist.

mod document;
mod operations;

pub use document::document;
