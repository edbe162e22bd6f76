WHERE step IN (SELECT step FROM marks)  -- most rows go before they are numbered and joined
