//! Every rule, and a game of leaders and holders.
