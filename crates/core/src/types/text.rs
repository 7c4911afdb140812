//! Text that is shared, never copied.

use std::sync::Arc;

/// The same bytes go to disk and to every peer.
pub type Text = Arc<str>;
