//! Every source of tokens, against scripted services.
